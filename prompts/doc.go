// Package prompts renders the prompts of agents: one template per kind of run, shared parts, and Render, which fills
// them in.
//
// Everything that a person, a repository or a tool wrote is data in a prompt. It is enclosed in fences longer than any
// run of backticks in it, and the rules in the prompt tell the agent not to follow instructions in it that contradict
// them. Data must contain only what the agent may see; this package filters nothing. Golden files in testdata show each
// prompt in full.
//
// Start with Render and Data.
package prompts
