// Package trust decides what of other people's words reaches the agent, and what of ours gets out.
//
// Inwards: Decide chooses the texts of an issue that the agent may see (people with write
// permission, or what such a person gave a 👍), Strip takes out of them what a reader on GitHub
// would not see, Blockers reads what a task waits for, and Difference shows an edit of a frozen
// text. Outwards: Redactor blanks secrets in comments, logs and transcripts.
//
// Nothing here talks to GitHub or stores anything: permissions come from an interface, texts from
// the caller. Neither is it a defence against instructions that stand in the open: those are why
// only trusted people's text is shown. Start reading at Decide and Strip.
package trust
