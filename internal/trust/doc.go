// Package trust decides which texts the agent can see, and removes secrets from errand's output.
//
// For input, [Decide] selects the texts of an issue that the agent can see (by people with write access, or approved by
// one with a 👍), [Strip] removes the parts that a reader on GitHub does not see, [Blockers] reads the issues that a
// task waits for, and [Difference] shows an edit of a frozen text. For output, [Redactor] redacts secrets in comments,
// logs and transcripts.
//
// The package does not call GitHub or store anything: the caller provides permissions and texts. It does not protect
// against visible instructions; that is why only trusted people's text is shown.
//
// Start here: [Decide] and [Strip].
package trust
