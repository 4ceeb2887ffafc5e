package initrepo

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/errand-bot/errand/internal/scan"
)

// Limits on what the description repeats, so that it fits into GitHub's limit.
const (
	maxListed = 15  // facts of one kind
	maxCode   = 120 // characters of a text of the repository
)

// body returns the description of the pull request. Every text of the repository is in a code span, in which GitHub interprets
// nothing.
func (p *Proposer) body(q Request) string {
	var b strings.Builder
	d := q.Draft
	fmt.Fprintf(&b, "`errand init` proposes these settings. It examined the files of commit %s", q.Target.Commit)
	if d.Tried != "" {
		fmt.Fprintf(&b, " and tried the commands %s", d.Tried)
	}
	b.WriteString(".\n\n")
	if d.HasSettings {
		b.WriteString("**This replaces the present `.errand.yml`:** look at what the diff removes.\n\n")
	}
	found(&b, d)
	tried(&b, d)
	if d.SignOff {
		b.WriteString("### Sign-off\n\nContributions need a `Signed-off-by` line here. The commit of this pull request has none, because a sign-off is a person's own act: " +
			"amend it with yours (`git commit --amend --signoff`) if a check asks for it.\n\n")
	}
	b.WriteString("### How to continue\n\n1. Read `.errand.yml`, and change what does not fit on this branch. Commands that are comments did not work; the reasons are next to them.\n" +
		"2. Merge. errand reads the file from the default branch when a task starts.\n")
	fmt.Fprintf(&b, "3. %s\n\n", p.Start)
	b.WriteString("Run `errand init` again to update this pull request. It does not touch the branch after people have changed it, and opens no other pull request if this one is closed.\n")
	return b.String()
}

// found lists what the files say.
func found(b *strings.Builder, d scan.Draft) {
	b.WriteString("### What was found\n\n")
	lines := 0
	line := func(what, name, origin string) {
		lines++
		fmt.Fprintf(b, "- %s: %s", what, code(name))
		if origin != "" {
			fmt.Fprintf(b, " (%s)", code(origin))
		}
		b.WriteString("\n")
	}
	for _, l := range d.Languages {
		line("Language", l.Name, fmt.Sprintf("files: %d", l.Files))
	}
	for _, v := range d.Versions {
		line("Version", v.Tool+" "+v.Version, v.Origin)
	}
	for _, m := range d.Modules {
		line("Module", m.Kind+" in "+m.Dir, m.Origin)
	}
	for _, l := range []struct {
		what  string
		facts []scan.Fact
	}{{"Layout", d.Layout}, {"CI", d.CI}, {"Rule", d.Rules}} {
		for _, f := range l.facts[:min(len(l.facts), maxListed)] {
			line(l.what, f.Name, f.Origin)
		}
		if more := len(l.facts) - maxListed; more > 0 {
			line(l.what, fmt.Sprintf("%d more", more), "")
		}
	}
	for _, n := range d.Notes[:min(len(d.Notes), maxListed)] {
		line("Note", n, "")
	}
	if lines == 0 {
		b.WriteString("Nothing that matters to errand.\n")
	}
	b.WriteString("\n")
}

// tried lists the commands with their results.
func tried(b *strings.Builder, d scan.Draft) {
	if len(d.Setup)+len(d.Check) == 0 {
		return
	}
	b.WriteString("### Commands\n\n| List | Command | From | Result |\n|---|---|---|---|\n")
	for _, l := range []struct {
		key  string
		list []scan.Command
	}{{"setup", d.Setup}, {"check", d.Check}} {
		for _, c := range l.list {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", l.key, cell(c.Run), cell(c.Origin), result(c))
		}
	}
	b.WriteString("\n")
}

// result describes how a command ended.
func result(c scan.Command) string {
	switch o := c.Outcome; {
	case o == nil:
		return "not tried"
	case o.Status == scan.Succeeded:
		return fmt.Sprintf("✅ succeeded in %.0f s", o.Seconds)
	case o.Status == scan.Failed:
		return fmt.Sprintf("❌ failed after %.0f s: %s", o.Seconds, cell(o.Reason))
	default:
		return "not tried: " + cell(c.Outcome.Reason)
	}
}

var backticks = regexp.MustCompile("`+")

// cell returns a text as a code span in a cell of a table, where a bar ends the cell unless a backslash precedes it. One that has a
// backslash of its own is replaced, because GitHub could take the two backslashes for one.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(code(text), `\|`, `\¦`), "|", `\|`)
}

// code returns a text as a code span outside of tables.
func code(text string) string {
	text = scan.Clean(text)
	if runes := []rune(text); len(runes) > maxCode {
		text = string(runes[:maxCode]) + "…"
	}
	longest := 0
	for _, run := range backticks.FindAllString(text, -1) {
		longest = max(longest, len(run))
	}
	if longest == 0 {
		return "`" + text + "`"
	}
	fence := strings.Repeat("`", longest+1)
	return fence + " " + text + " " + fence
}
