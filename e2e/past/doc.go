// Package past proves that databases of earlier versions keep their meaning. testdata has one that commit 403b8aa wrote,
// with a task in every phase and a job of nearly every kind; its README says how it was made. Today's code opens it and has
// to read the values that 403b8aa read. The walks of e2e/walk take the tasks of the same database to their end.
//
// It also lists all strings that are persisted or go over a wire, without regard to Go's names and packages, and fails where one
// is lost: see TestStoredNamesStay.
//
// It holds tests only. Start reading at TestOldDatabaseReadsAsBefore.
package past
