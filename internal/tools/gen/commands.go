package main

import "github.com/errand-bot/errand/internal/comment/command"

const commandsHead = `# Commands

<!-- Made by ` + "`make generate`" + ` from the table in internal/comment/command. -->

Write a command at the start of a line of a comment, after a mention of the App (the docs write ` + "`@errand`" + `; yours is the name
of your App). The line must be part of a paragraph at the top level of the comment. errand ignores text in quotes,
code, lists, tables, footnotes, HTML elements such as ` + "`<details>`" + `, crossed-out or emphasized text, and the texts of links and images. An unclosed element
includes everything after it. errand only obeys users with write access and asks GitHub for
their permission each time. Other text after the mention is a message to the agent (see [Comments](#comments)). errand answers an
unknown command with the most similar one.
A comment may contain ten commands, one per line; a reply lists further ones, which are not executed.

`

const commandsTail = `
## Comments

On the issue and on its pull request alike, a comment that begins, perhaps after a quotation, by addressing somebody else (` + "`@grace what do you think?`" + `), or that consists of thanks,
an emoji or a bare +1, starts nothing, also below a command. The same holds for reviews and for replies in review threads, where a +1 may answer a question. In a
reply by e-mail, GitHub's mail quoted at the end and the signature above it do not count.

While a plan waits for approval or a question of the agent is open, errand marks every other comment by a person with write access with 👀, gathers comments until a minute has passed without
another one (five minutes at most), reads them again, and passes them to the agent's session. For a plan, the agent ends in one of three ways:

- It makes a new revision of the plan.
- It answers. The plan stays as it is and can still be approved.
- It changes nothing: 👀 becomes 👍. Only a comment that begins with ` + "`@errand`" + ` gets an answer even then.

Comments on changes that wait for approval (` + "`publish: after-approval`" + `) are gathered in the same way, and lead to new changes, or to an
answer, after which the changes are shown again.
Comments on an open question are read in the same way: one may answer it, ask something back, or change nothing, and then the question stays open.

An approval that arrives meanwhile is held. If the plan stays as it is, it is checked again and counts; if there is a new revision, a comment says that the approval
does not count. "LGTM" or "ok, go ahead" alone approves nothing: errand answers once per revision how to approve.

### Messages to a working agent

While an agent works, a comment by a person with write access that begins with ` + "`@errand`" + ` is a message to it, on the issue and on the pull
request alike. errand marks it with 👀 and names it in the status comment. It gathers messages for ten seconds, reads them again, and interrupts
the agent as soon as that executes no tool, at the latest a minute after the first message. The agent's session continues with them, and 👀
becomes 👍. Turns, cost and time count on. While a plan is implemented, a message is a condition of the plan: the pull request lists it with its
author, and what goes beyond the plan ends in a question. A message that is deleted before it is delivered is not delivered; what was
delivered stays as it was read. A message of more than 8 KB, and any after twenty of them, waits for the end of the run, as a reply says.

` + "`@errand after: …`" + ` always waits until the run has ended by itself: a plan is then revised before it is posted, changes that wait for
approval before they are shown, and after any other run the message begins a review round. If the same comment also has a message without
` + "`after:`" + `, both interrupt the agent. Comments without ` + "`@errand`" + `, reviews and replies in review
threads interrupt nothing.

## Approving a plan

There are three ways to approve the newest revision. errand verifies each again before work starts:

- a 👍 on the plan's comment (GitHub sends no webhook for reactions, so this takes up to a minute),
- a tick in the box at the end of the plan's comment,
- ` + "`@errand approve HASH`" + `, with the hash in the plan's title. Without the hash it counts only for a revision that
  is at least 30 seconds old, or is the only one.

` + "`with: …`" + ` adds conditions, which are passed to the agent verbatim. If a plan offers several approaches, approve one by its
number: ` + "`@errand approve 2`" + `, or a tick in its box. errand answers an approval that does not count once, with the reason. If
GitHub's webhook about a tick is lost, errand cannot tell who ticked the box: it clears the box within 15 minutes
and asks for the tick again.

You can withdraw an approval until work starts: remove the 👍, clear the box, or delete, hide or edit the comment. Edited comments
give no commands, so an edited comment approves nothing; write a new one. Other commands that were deleted, hidden or edited before
errand read them, for example while it was down, are not executed either, and a reply says so.

## Starting a task

Assign the issue to the machine user in ` + "`trigger.assignee`" + `, add the label in ` + "`trigger.label`" + `, or write ` + "`@errand`" + ` in a
comment or in the issue's own text. ` + "`base: NAME`" + ` in that text starts from another branch. Removing the assignment or the label that started the task cancels it.

Commands in the text of a new issue count like those in a comment by the person who opened it. A later edit that adds a mention also starts
the task, if the editor has write access, but gives no other commands. Once an issue has a task, or has had one, mentions in its text have no effect.

An issue has at most one open pull request by errand. A new trigger after the end of a task continues its pull request if that is open, or was
closed without a merge in the last 14 days: with its branch, plan, review rounds and costs so far, and the comments and reviews written
meanwhile. ` + "`restart`" + ` begins again without it: errand closes the pull request with a link to the new work, and closes it again if somebody
reopens it. While the issue is closed, ` + "`restart`" + ` does nothing, and a reply says so.

## Closing a pull request

A closed pull request that was not merged parks its task for 14 days (` + "`keep.asleep`" + `): a running agent is stopped, its work is saved, and the VM
is deleted. Reopening it resumes the task, with the review round that was under way. ` + "`retry`" + `, a message to errand, or another trigger has errand
reopen it; errand first restores a branch that was deleted. After 14 days the task is canceled.
`

// commands returns docs/commands.md.
func commands(*source) (string, error) {
	return commandsHead + command.DocTable() + commandsTail, nil
}
