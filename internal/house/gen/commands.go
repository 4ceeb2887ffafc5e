package main

import "github.com/errand-bot/errand/internal/comment"

const commandsHead = `# Commands

<!-- Made by ` + "`make generate`" + ` from the table in internal/comment. -->

Write a command at the start of a line of a comment, after the bot's mention (the docs write ` + "`@errand`" + `; yours is the name
of your App). It has to be a line of a paragraph at the top level of the comment: text in quotes, code, lists, tables, footnotes, elements of HTML
such as ` + "`<details>`" + `, crossed-out or emphasized text, and the texts of links and images is not read. An element that is not closed
encloses all that follows. Only people with write permission are obeyed; GitHub is asked for
that permission each time. Anything else after the mention is a message to the agent, and a comment without a mention,
written while a plan waits, asks for a new revision of it. An unknown command is answered with the nearest one.
A comment may give ten commands, a line each; which ones beyond that were not carried out is said in an answer.

`

const commandsTail = `
## Approving a plan

Three things approve the newest revision, and each is checked again before work starts:

- a 👍 on the plan's comment (GitHub sends no webhook for a reaction, so that it takes up to a minute),
- a tick in the box at the end of the plan's comment,
- ` + "`@errand approve HASH`" + `, with the hash that stands in the plan's title. Without the hash it counts only for a revision that
  has stood for 30 seconds, or is the only one.

` + "`with: …`" + ` adds conditions, which reach the agent word for word. A plan that offers several approaches is approved with
the number of one: ` + "`@errand approve 2`" + `, or a tick in its box. What does not count is answered once, with the reason. If
GitHub's webhook about a tick is lost, nobody can tell who made it: within a quarter of an hour errand clears the box and asks for the tick again.

An approval can be withdrawn until work starts: take the 👍 back, empty the box, or delete, hide or edit the comment. Edits give
no commands, so an edited comment approves nothing; write a new one. Other commands that were deleted, hidden or edited before
errand read them, for instance while it was down, are not carried out either, and the answer says so.

## Starting a task

Assign the issue to the machine user of ` + "`trigger.assignee`" + `, put the label of ` + "`trigger.label`" + ` on it, or write ` + "`@errand`" + ` in a
comment. ` + "`base: NAME`" + ` in that comment starts from another branch. Taking the assignment or the label away cancels the task.
`

// commands is docs/commands.md.
func commands(*source) (string, error) {
	return commandsHead + comment.CommandTable() + commandsTail, nil
}
