// Package comment is the conversation with people on GitHub, in both directions: what they tell the
// bot (Parse) and what the bot says to them (Render, Status, PRBody).
//
// Both come from one table, Commands, from which the parser, the help text and the table in the docs
// are made. Text of agents and of strangers is embedded by Embed alone, which keeps it from breaking
// out of its place: no open fences, no HTML, no boxes or markers of ours, no mention of anybody.
//
// Nothing here calls GitHub, decides what a command does, or keeps state: the text is a pure function
// of the task, the post and the View. Start reading at Commands, then Parse, then Render.
package comment
