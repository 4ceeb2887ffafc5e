// Package repotest tests the repository itself: that packages import only what their layer permits, that files and functions
// are not too long, that everything exported is documented, and that the links, commands, paths and tests that documents
// name exist.
//
// It has only tests. The rules about imports are in internal/tools/layers, and the commands behind the Makefile in
// internal/tools. Start with imports_test.go.
package repotest
