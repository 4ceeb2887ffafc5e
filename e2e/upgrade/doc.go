// Package upgrade tests that databases of earlier versions stay readable. testdata contains one that commit 403b8aa
// wrote, with a task in every phase and a job of every kind but rebase; 403b8aa/README.md describes how it was made.
// Today's code has to read the same values from it as 403b8aa did, and likewise from a smaller database of each later schema. The walks of e2e/walk run the tasks of that database
// to completion.
//
// The package also lists all strings that are stored or sent over a wire, independently of Go identifiers and packages,
// and fails if one is missing: see TestStoredNamesStay.
//
// It contains tests only. Start reading at TestOldDatabaseReadsAsBefore.
package upgrade
