package shellrules

import (
	"fmt"
	"slices"
	"strings"
)

// Rules say which commands may be called, and which files tools may change. Both lists of commands are of beginnings, word by word: "npm run" is "npm run test"
// and not "npm install".
type Rules struct {
	// Allow are the commands that may be called; nil is any.
	Allow []string `json:"allow"`
	// Deny are those that may not, whatever Allow says. What ends in :* is a beginning as well; Exact are whole
	// commands.
	Deny  []string `json:"deny,omitempty"`
	Exact []string `json:"exact,omitempty"`
	// Write are the folders below which tools may change files; nil is anywhere. Commands are not held to it.
	Write []string `json:"write,omitempty"`
}

// Refusal is why a line may not be run. Its text is for the model that wrote the line.
type Refusal struct {
	// Command is the part of the line that is refused, Rule what denies it; Rule is empty where nothing allows it.
	Command, Rule string
	// Unread is why the line cannot be judged, empty if it can be.
	Unread string
	// Allow are the commands that may be called.
	Allow []string
}

func (r *Refusal) Error() string {
	switch {
	case r.Rule != "":
		return fmt.Sprintf("The rules of this run refuse this call (Bash(%s:*)). Do it another way, or leave it out.", r.Rule)
	case r.Unread != "":
		return fmt.Sprintf("The rules of this run refuse this call: %s. Write it plainly. %s", r.Unread, r.may())
	}
	return fmt.Sprintf("The rules of this run refuse this call: %q is not among the commands that may be called. %s", cut(r.Command), r.may())
}

// Name is what was refused in few words, as lists of refusals have it.
func (r *Refusal) Name() string {
	if r.Rule != "" {
		return "Bash(" + r.Rule + ":*)"
	}
	return "Bash: " + cut(r.Command)
}

// may names what may be called: the repository's own commands first.
func (r *Refusal) may() string {
	always := Always()
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

// cut shortens a command for a message.
func cut(s string) string {
	if runes := []rune(s); len(runes) > 80 {
		return string(runes[:80]) + "…"
	}
	return s
}

// Judge says why a line may not be run, nil if it may.
func (r Rules) Judge(line string) *Refusal {
	calls, err := Calls(line)
	for _, c := range calls {
		if rule := r.denying(c); rule != "" {
			return &Refusal{Command: c.String(), Rule: rule}
		}
	}
	if rule := r.roughly(line, err); rule != "" {
		return &Refusal{Command: cut(line), Rule: rule}
	}
	if r.Allow == nil {
		return nil // a line that cannot be read is for the shell to refuse
	}
	if err != nil {
		return &Refusal{Command: cut(line), Unread: err.Error(), Allow: r.Allow}
	}
	for _, c := range calls {
		if why := r.missing(c); why != nil {
			return why
		}
	}
	return nil
}

// denying is the rule that is against a call, or empty.
func (r Rules) denying(c Call) string {
	for _, rule := range r.Deny {
		words := strings.Fields(strings.TrimSuffix(rule, ":*"))
		if len(words) > 0 && slices.ContainsFunc(c.forms(), func(form []string) bool { return begins(form, words) }) {
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

// roughly looks for denied commands in a line that cannot be taken apart.
func (r Rules) roughly(line string, err error) string {
	if err == nil {
		return ""
	}
	for part := range strings.FieldsFuncSeq(line, func(c rune) bool { return strings.ContainsRune(";&|()\n`", c) }) {
		if rule := r.denying(Call{Words: strings.Fields(part)}); rule != "" {
			return rule
		}
	}
	return ""
}

// missing is the refusal of a call that nothing allows, nil if something does.
func (r Rules) missing(c Call) *Refusal {
	if c.Builtin {
		return nil
	}
	for _, rule := range r.Allow {
		if words := strings.Fields(rule); len(words) > 0 && slices.ContainsFunc(c.forms(), func(form []string) bool { return begins(form, words) }) {
			return nil
		}
	}
	if c.Opened {
		return nil // what it starts is a call of its own
	}
	out := &Refusal{Command: c.String(), Allow: r.Allow}
	if c.Unread != "" {
		out.Unread = c.Unread
	}
	return out
}

// begins reports whether words begin with others.
func begins(words, with []string) bool {
	return len(words) >= len(with) && slices.Equal(words[:len(with)], with)
}
