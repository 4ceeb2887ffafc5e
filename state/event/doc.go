// Package event has the facts that may move a task: actions of people on GitHub, and reports of runs and jobs.
//
// An [Event] says which task a fact is about, when it happened and who caused it. Its [Payload] says which kind of fact it is, and has
// what belongs to this kind alone. The transition table in state/machine decides what follows from an event.
//
// Events of people's actions are stored while a job reads the person's permission; reports of runs and jobs never are. A
// stored event is one flat JSON object: the kind, the fields of Event, and those of the payload.
//
// Start with [Event]; people.go, run.go and job.go list the payloads. To add a kind, declare its payload in one of them, and add its
// name and type to the table in kind.go.
package event
