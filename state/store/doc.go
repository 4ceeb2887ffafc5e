// Package store keeps tasks, their jobs and the deliveries of webhooks in a key-value database. [Store.Apply] is the only
// way to change a task: in one update it asks machine.Next, stores the task, queues its jobs and marks the delivery or job
// as done that the event came from.
//
// Start here: apply.go; keys.go lists every key of the database.
package store
