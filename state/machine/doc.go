// Package machine decides how a task changes: [Next] takes a task and an event, and returns the changed task and the
// jobs that follow. It is pure: it reads no clock, no store and no network. [Table] lists every transition;
// docs/lifecycle.md is generated from it.
//
// Start with the files table_*.go, which have the rows, and guards.go, which has their conditions. The actions of a row
// are in the file of their subject, for example approvals.go or publish.go.
package machine
