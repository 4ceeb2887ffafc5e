// Package house keeps the house: its tests hold the whole tree against the rules that it is written
// by. Which package may import which (the rules are in layers), how long files and functions are, what is documented, that
// links in the documents lead somewhere.
//
// It has no code of its own. The commands below it serve the Makefile: count counts tests, fuzz runs
// fuzz targets, gen writes the documents that are made from code, deadcode looks for functions that no program reaches. Start reading at imports_test.go.
package house
