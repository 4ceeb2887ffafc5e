// Package prompts holds what agents are told: one template per kind of run, shared parts, and Render,
// which fills them.
//
// Everything that a person, a repository or a tool wrote is data in a prompt: it stands in fences
// longer than any run of backticks within, and the rules say that it is not to be obeyed where it
// goes against them. What is not visible to the agent must not be in Data; this package filters
// nothing. The templates are files beside it; golden files in testdata show each prompt in full.
//
// Start reading at Render and Data.
package prompts
