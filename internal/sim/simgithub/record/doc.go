// Package record records answers and webhooks of the GitHub simulator in files, one of each shape. The likeness test
// compares them with the descriptions that GitHub publishes.
//
// Start with Recorder.
package record
