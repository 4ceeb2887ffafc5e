package shellrules

import (
	"fmt"
	"slices"
	"strings"
)

// Rules define which commands may be called and which files tools may change. Both lists of commands contain prefixes,
// compared word by word: "npm run" matches "npm run test" but not "npm install".
type Rules struct {
	// Allow lists the commands that may be called; nil means any.
	Allow []string `json:"allow"`
	// Deny lists the commands that may not be called; it takes precedence over Allow. A trailing :* is ignored, because
	// all entries are prefixes. Exact lists whole denied commands.
	Deny  []string `json:"deny,omitempty"`
	Exact []string `json:"exact,omitempty"`
	// Write lists the folders in which tools may change files; nil means anywhere. Commands are not restricted by it.
	Write []string `json:"write,omitempty"`
}

// Refusal explains why a line may not be run. Its text is for the model that wrote the line.
type Refusal struct {
	// Command is the refused part of the line. Rule is the rule that denies it, empty if no rule allows it.
	Command, Rule string
	// Unread explains why the line cannot be judged; empty if it can be.
	Unread string
	// Allow lists the commands that may be called.
	Allow []string
}

func (r *Refusal) Error() string {
	switch {
	case r.Rule != "":
		return fmt.Sprintf("The rules of this run refuse this call (Bash(%s:*)). Do it another way, or leave it out.", r.Rule)
	case r.Unread != "":
		return fmt.Sprintf("The rules of this run refuse this call: %s. Write it plainly. %s", r.Unread, r.allowedHint())
	}
	return fmt.Sprintf("The rules of this run refuse this call: %q is not among the commands that may be called. %s", truncateCommand(r.Command), r.allowedHint())
}

// Name returns a short name of the refused call, for lists of refusals.
func (r *Refusal) Name() string {
	if r.Rule != "" {
		return "Bash(" + r.Rule + ":*)"
	}
	return "Bash: " + truncateCommand(r.Command)
}

// allowedHint lists the allowed commands, with the repository's own first.
func (r *Refusal) allowedHint() string {
	always := BaseCommands()
	var own []string
	for _, c := range r.Allow {
		if !slices.Contains(always, c) {
			own = append(own, c)
		}
	}
	if len(own) == 0 {
		own = []string{"none of this repository's"}
	}
	return "Allowed are: " + strings.Join(own, ", ") + "; and those that look at files, text and the system, or make, move and remove files (such as ls, cat, grep, sed, mkdir, rm)."
}

// truncateCommand shortens a command for a message.
func truncateCommand(s string) string {
	if runes := []rune(s); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return s
}

// Judge returns why a line may not be run, or nil.
func (r Rules) Judge(line string) *Refusal {
	calls, err := Calls(line)
	for _, c := range calls {
		if rule := r.denyingRule(c); rule != "" {
			return &Refusal{Command: c.String(), Rule: rule}
		}
	}
	if rule := r.denyingRuleUnparsed(line, err); rule != "" {
		return &Refusal{Command: truncateCommand(line), Rule: rule}
	}
	if r.Allow == nil {
		return nil // the shell itself rejects a line that cannot be parsed
	}
	if err != nil {
		return &Refusal{Command: truncateCommand(line), Unread: err.Error(), Allow: r.Allow}
	}
	for _, c := range calls {
		if why := r.refuseUnlisted(c); why != nil {
			return why
		}
	}
	return nil
}

// denyingRule returns the rule that denies a call, or "".
func (r Rules) denyingRule(c Call) string {
	for _, rule := range r.Deny {
		words := strings.Fields(strings.TrimSuffix(rule, ":*"))
		if len(words) > 0 && slices.ContainsFunc(c.spellings(), func(form []string) bool { return hasPrefix(form, words) }) {
			return strings.Join(words, " ")
		}
	}
	for _, rule := range r.Exact {
		if strings.Join(strings.Fields(rule), " ") == strings.Join(c.Words, " ") {
			return rule
		}
	}
	return ""
}

// denyingRuleUnparsed searches a line that cannot be parsed for denied commands.
func (r Rules) denyingRuleUnparsed(line string, err error) string {
	if err == nil {
		return ""
	}
	for part := range strings.FieldsFuncSeq(line, func(c rune) bool { return strings.ContainsRune(";&|()\n`", c) }) {
		if rule := r.denyingRule(Call{Words: strings.Fields(part)}); rule != "" {
			return rule
		}
	}
	return ""
}

// refuseUnlisted returns the refusal of a call that no rule allows, or nil.
func (r Rules) refuseUnlisted(c Call) *Refusal {
	if c.Builtin {
		return nil
	}
	for _, rule := range r.Allow {
		if words := strings.Fields(rule); len(words) > 0 &&
			slices.ContainsFunc(c.spellings(), func(form []string) bool { return hasPrefix(form, words) }) {
			return nil
		}
	}
	if c.Opened {
		return nil // the command that it starts is judged separately
	}
	out := &Refusal{Command: c.String(), Allow: r.Allow}
	if c.Unread != "" {
		out.Unread = c.Unread
	}
	return out
}

// hasPrefix reports whether words begins with the words of prefix.
func hasPrefix(words, with []string) bool {
	return len(words) >= len(with) && slices.Equal(words[:len(with)], with)
}
