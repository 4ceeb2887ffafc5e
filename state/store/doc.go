// Package store keeps tasks, their jobs and the deliveries of webhooks in a key-value database. [Store.Apply] is the
// only way to change a task: in one update it calls machine.Next, stores the task, queues its jobs and marks the
// event's delivery or job as done.
//
// Start with apply.go; keys.go lists every key of the database.
package store
