// Package mutants plants bugs in the product's source when a test binary is built, and nowhere else, to prove that a
// test finds them. A table names each bug and the lines that it changes. Load reads it and fails the test if an entry
// does not match the source; Build makes one test binary with all mutants of a table, of which one is active at a time.
//
// Start reading at Mutant.
package mutants
