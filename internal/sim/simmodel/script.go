package simmodel

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/goccy/go-yaml"
)

// Script is what the model says, as an ordered list: the first rule that fits a request answers it.
type Script struct {
	Rules []Rule `yaml:"rules"`
}

// Rule answers the requests of one kind of prompt.
type Rule struct {
	// Name appears in errors and records; default "rule N", counted from 1.
	Name string `yaml:"name"`
	// Step must equal the word after `errand-step:` at the start of a line of the newest prompt, or,
	// if that has none, of an earlier prompt or the system prompt. Empty fits every step.
	Step string `yaml:"step"`
	// Match and Not are regular expressions over the newest prompt: the first must be found in it,
	// the second must not. Groups of Match are visible to templates as .Groups.
	Match string `yaml:"match"`
	Not   string `yaml:"not"`
	// System is a regular expression that must be found in the system prompt.
	System string `yaml:"system"`
	// Round, if not 0, fits only the n-th prompt of this step within one conversation.
	Round int `yaml:"round"`
	// Turns are played in order: turn N answers when N answers were given since the newest prompt.
	Turns []Turn `yaml:"turns"`
	// Repeat begins again with the first turn after the last, for ever.
	Repeat bool `yaml:"repeat"`
}

// Turn is one answer: thinking, then text, then tool calls. Every string of it is a text/template
// over Conversation, so an answer may quote the output of the last tool as {{.Last}}.
type Turn struct {
	Thinking string `yaml:"thinking"`
	Text     string `yaml:"text"`
	// Bash are shell commands, each a call of the tool Bash. They come before Tools.
	Bash  []string `yaml:"bash"`
	Tools []Call   `yaml:"tools"`
	// Stop is the stop reason; default tool_use if there are calls, else end_turn. In capitals it is one of Gemini's own.
	Stop string `yaml:"stop"`

	// Wait is the name of a gate before which the answer waits until it is released.
	Wait string `yaml:"wait"`
	// Delay is waited before the first byte of the answer.
	Delay time.Duration `yaml:"delay"`
	// Status, if not 0 or 200, is answered instead, with Message in the API's error form, RetryAfter
	// (seconds, if not 0) and Header. It strikes Times times for one conversation.
	Status     int               `yaml:"status"`
	Message    string            `yaml:"message"`
	RetryAfter int               `yaml:"retry_after"`
	Header     map[string]string `yaml:"header"`
	// Cut, if not 0, closes the connection after that many content deltas of a stream. It strikes
	// Times times as well; an unstreamed answer is cut in its middle.
	Cut int `yaml:"cut"`
	// Silence has the connection stay open at the place of Cut, without a word, instead of closing it.
	Silence bool `yaml:"silence"`
	// Times is how often Status or Cut strike before the answer is given: 0 means once, -1 always.
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

// LoadScript reads a script from a YAML file.
func LoadScript(path string) (Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Script{}, fmt.Errorf("read model script: %w", err)
	}
	s, err := ParseScript(data)
	if err != nil {
		return Script{}, fmt.Errorf("%s: %w", path, err)
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
		return c, errors.New("its last turn calls tools, so that nobody answers their results; add a turn or repeat: true")
	}
	return c, nil
}

// check refuses what could never be played.
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
