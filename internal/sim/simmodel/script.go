package simmodel

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/goccy/go-yaml"
)

// Script is an ordered list of rules: the first one that matches a request determines the response.
type Script struct {
	Rules []Rule `yaml:"rules"`
}

// Rule determines the responses to one kind of prompt.
type Rule struct {
	// Name appears in errors and records; default "rule N", counted from 1.
	Name string `yaml:"name"`
	// Step must equal the word after `errand-step:` at the start of a line of the newest prompt or, if that has none,
	// of an earlier prompt or the system prompt. Empty matches every step.
	Step string `yaml:"step"`
	// Match and Not are regular expressions: the newest prompt must match the first and not the second. Groups of Match
	// are available to templates as .Groups.
	Match string `yaml:"match"`
	Not   string `yaml:"not"`
	// System is a regular expression that the system prompt must match.
	System string `yaml:"system"`
	// Round, if not 0, matches only the n-th prompt of this step within one conversation.
	Round int `yaml:"round"`
	// Turns are played in order: turn N after N responses since the newest prompt.
	Turns []Turn `yaml:"turns"`
	// Repeat restarts with the first turn after the last.
	Repeat bool `yaml:"repeat"`
}

// Turn is one response: thinking, then text, then tool calls. Every string in it is a text/template over
// [Conversation], so a response may quote the output of the last tool as {{.Last}}.
type Turn struct {
	Thinking string `yaml:"thinking"`
	Text     string `yaml:"text"`
	// Bash are shell commands, each a call of the tool Bash. They precede Tools.
	Bash  []string `yaml:"bash"`
	Tools []Call   `yaml:"tools"`
	// Stop is the stop reason; default tool_use if there are calls, otherwise end_turn. An upper-case value is one of
	// Gemini's reasons.
	Stop string `yaml:"stop"`

	// Wait is the name of a gate that blocks the response until it is released.
	Wait string `yaml:"wait"`
	// Delay is the pause before the first byte of the response.
	Delay time.Duration `yaml:"delay"`
	// Status, if not 0 or 200, is sent instead of the response, with Message in the API's error format, RetryAfter
	// (seconds, if not 0) and Header. It applies Times times in one conversation.
	Status     int               `yaml:"status"`
	Message    string            `yaml:"message"`
	RetryAfter int               `yaml:"retry_after"`
	Header     map[string]string `yaml:"header"`
	// Cut, if not 0, closes the connection after that many content deltas of a stream. It also applies Times times; an
	// unstreamed response is cut in the middle.
	Cut int `yaml:"cut"`
	// Silence keeps the connection open and silent at the place of Cut, instead of closing it.
	Silence bool `yaml:"silence"`
	// Times is how often Status or Cut apply before the response is sent: 0 means once, -1 always.
	Times int `yaml:"times"`
}

// Call is one tool call.
type Call struct {
	Name  string         `yaml:"name"`
	Input map[string]any `yaml:"input"`
}

// ParseScript reads a script in YAML. Unknown keys are errors.
func ParseScript(data []byte) (Script, error) {
	var s Script
	if len(bytes.TrimSpace(data)) == 0 {
		return s, errors.New("parse model script: it is empty")
	}
	if err := yaml.UnmarshalWithOptions(data, &s, yaml.Strict()); err != nil {
		return Script{}, fmt.Errorf("parse model script: %w", err)
	}
	if _, err := compile(s); err != nil {
		return Script{}, err
	}
	return s, nil
}

// rule is a Rule with its expressions compiled.
type rule struct {
	Rule
	match, not, system *regexp.Regexp
}

// compile checks every rule of a script.
func compile(s Script) ([]rule, error) {
	rules := make([]rule, 0, len(s.Rules))
	for i, r := range s.Rules {
		if r.Name == "" {
			r.Name = fmt.Sprintf("rule %d", i+1)
		}
		c, err := compileRule(r)
		if err != nil {
			return nil, fmt.Errorf("model script, %s: %w", r.Name, err)
		}
		rules = append(rules, c)
	}
	return rules, nil
}

func compileRule(r Rule) (rule, error) {
	c := rule{Rule: r}
	if len(r.Turns) == 0 {
		return c, errors.New("it has no turns")
	}
	for _, e := range []struct {
		key, text string
		into      **regexp.Regexp
	}{{"match", r.Match, &c.match}, {"not", r.Not, &c.not}, {"system", r.System, &c.system}} {
		if e.text == "" {
			continue
		}
		re, err := regexp.Compile(e.text)
		if err != nil {
			return c, fmt.Errorf("%s: %w", e.key, err)
		}
		*e.into = re
	}
	for i, t := range r.Turns {
		if err := t.check(); err != nil {
			return c, fmt.Errorf("turn %d: %w", i, err)
		}
	}
	last := r.Turns[len(r.Turns)-1]
	if !r.Repeat && len(last.Bash)+len(last.Tools) > 0 {
		return c, errors.New("its last turn calls tools, but no turn follows their results; add a turn or repeat: true")
	}
	return c, nil
}

// check refuses turns that could never be played.
func (t Turn) check() error {
	switch {
	case t.Status != 0 && (t.Status < 200 || t.Status > 599):
		return fmt.Errorf("status %d is not an HTTP status", t.Status)
	case t.Cut < 0:
		return fmt.Errorf("cut %d is negative", t.Cut)
	case t.Delay < 0:
		return fmt.Errorf("delay %s is negative", t.Delay)
	}
	for _, c := range t.Tools {
		if c.Name == "" {
			return errors.New("a tool call has no name")
		}
	}
	return t.parseTemplates()
}
