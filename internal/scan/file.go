package scan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// A Draft is what the proposed file depends on besides the report.
type Draft struct {
	Report
	// Commit is the one that was examined.
	Commit string
	// Tried says where the commands were tried; empty if they were not.
	Tried string
	// NoSignOff is why signoff cannot be proposed although contributions need it.
	NoSignOff string
}

// File returns the proposed settings as a commented YAML file. A command that failed is a comment with the reason.
func (d Draft) File() []byte {
	var b strings.Builder
	b.WriteString("# errand's settings for this repository, proposed by `errand init`. Change or delete what does not fit.\n" +
		"# errand reads this file from the default branch when a task starts. Its manual explains all keys (docs/repository-settings.md).\n")
	switch {
	case d.Tried != "":
		fmt.Fprintf(&b, "# The commands were tried on commit %.12s, %s.\n", clean(d.Commit), clean(d.Tried))
	default:
		b.WriteString("# The commands were not tried: read them before you merge this.\n")
	}
	d.commands(&b, "setup", "Commands that prepare a fresh checkout before the agent starts.", d.Setup)
	d.commands(&b, "check", "Commands that must succeed before errand opens or updates a pull request. They run in a checkout and a home of their own.", d.Check)
	if d.SignOff {
		origin := ""
		for _, f := range d.Rules {
			if strings.Contains(f.Name, "DCO") {
				origin = f.Origin
			}
		}
		fmt.Fprintf(&b, "\n# Commits need a sign-off here (%s): errand adds that of the person who approved the plan.\n", clean(origin))
		if d.NoSignOff != "" {
			fmt.Fprintf(&b, "# Not possible now: %s\n# ", clean(d.NoSignOff))
		}
		b.WriteString("signoff: true\n")
	}
	d.suggestions(&b)
	return []byte(b.String())
}

// commands writes a list of commands.
func (d Draft) commands(b *strings.Builder, key, about string, list []Command) {
	if len(list) == 0 {
		fmt.Fprintf(b, "\n# %s None were found.\n# %s: []\n", about, key)
		return
	}
	fmt.Fprintf(b, "\n# %s\n", about)
	off := ""
	if !slices.ContainsFunc(list, Command.active) {
		off = "# "
	}
	fmt.Fprintf(b, "%s%s:\n", off, key)
	for _, c := range list {
		mark := "  "
		if !c.active() {
			mark = "  # "
		}
		if off != "" {
			mark = "#   "
		}
		fmt.Fprintf(b, "%s# %s\n", strings.TrimSuffix(mark, "# "), d.remark(c))
		fmt.Fprintf(b, "%s- %s\n", mark, quoted(c.Run))
	}
}

// active reports whether the command is proposed, not just shown.
func (c Command) active() bool { return c.Outcome == nil || c.Outcome.Status != Failed }

// remark returns why a command is proposed, and what happened when it was tried.
func (d Draft) remark(c Command) string {
	text := "from " + c.Origin
	if c.InCI != "" {
		text += "; also run by " + c.InCI
	}
	if c.Install && slices.ContainsFunc(d.Check, func(other Command) bool { return other.Run == c.Run }) {
		text += "; needed in both lists"
	}
	switch o := c.Outcome; {
	case o == nil:
	case o.Status == Succeeded:
		text += "; succeeded"
	case o.Status == Failed:
		text += "; left out because it failed: " + o.Reason
	default:
		text += "; not tried: " + o.Reason
	}
	return cleanTo(maxRemark, text)
}

// quoted returns a text as YAML on one line. The encoder leaves some texts bare that its own parser reads as something else, such as
// "? a"; these are written as JSON, which is YAML, too.
func quoted(text string) string {
	var back []string
	data, err := yaml.Marshal(text)
	line := strings.TrimSpace(string(data))
	if err == nil && !strings.Contains(line, "\n") && yaml.Unmarshal([]byte("- "+line), &back) == nil && len(back) == 1 && back[0] == text {
		return line
	}
	data, err = json.Marshal(text)
	if err != nil {
		return `""` // a text always encodes
	}
	return string(data)
}

// suggestions writes settings that people may want, as comments.
func (d Draft) suggestions(b *strings.Builder) {
	if len(d.Guides) > 0 {
		fmt.Fprintf(b, "\n# Agents read AGENTS.md, CLAUDE.md, GEMINI.md and .errand/AGENT.md by default. With this line they read these files instead.\n# guidance: [%s]\n", strings.Join(d.Guides, ", "))
	}
	if i := slices.IndexFunc(d.Rules, func(f Fact) bool { return f.Name == "Conventional Commits" }); i >= 0 {
		fmt.Fprintf(b, "\n# Commit messages follow Conventional Commits (%s). Say so in AGENTS.md, or give all commits one type:\n# commit: \"feat: {task}\"\n", d.Rules[i].Origin)
	}
	b.WriteString("\n# Other keys that repositories often set:\n# plan: one-step # or two-step, or none\n# draft: true # open pull requests as drafts\n" +
		"# gate: {protected: [\"migrations/**\"]} # paths that errand must not change\n# limits: {cost: 5} # US dollars per task\n")
}

// Missing returns what the proposed file has and the present one has not: whole keys, or commands of a list. It returns false if
// the present file cannot be read.
func (d Draft) Missing(present string) (list []string, ok bool) {
	body, ok := parseYAML(present)
	if !ok {
		return nil, false
	}
	for _, l := range []struct {
		key      string
		commands []Command
	}{{"setup", d.Setup}, {"check", d.Check}} {
		var have []string
		for _, e := range elements(child(body, l.key)) {
			have = append(have, scalar(e), scalar(child(e, "run")))
		}
		for _, c := range l.commands {
			if c.active() && !slices.Contains(have, c.Run) {
				list = append(list, l.key+": "+c.Run)
			}
		}
	}
	if d.SignOff && d.NoSignOff == "" && child(body, "signoff") == nil {
		list = append(list, "signoff: true")
	}
	return list, true
}
