// Package comment renders everything that errand writes on GitHub: comments, the status comment and the texts of pull
// requests and proposed issues. The commands that people write are in package command, and the Markdown of other people's
// text is in package markdown.
//
// A text is a pure function of the task, the post and the [View]. Nothing here calls GitHub, decides what a command does,
// or keeps state. Text of agents and strangers is only embedded by package markdown, which keeps it from breaking out of its
// place.
//
// Start with [Render]: each kind of post has a method of post in the file of its subject. [Status] renders the status comment and
// [PRBody] the text of a pull request.
package comment
