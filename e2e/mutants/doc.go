// Package mutants plants bugs in the product's source when a test binary is built, and nowhere else, so that a test can
// be shown to notice them. A table names each bug and the lines that it changes. Load reads it and fails the test if an
// entry does not fit the source any more; Build makes one test binary with all of a table's mutants, of which one is
// played at a time.
//
// Start reading at Mutant.
package mutants
