package simmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Conversation is the content of a request for rules and templates.
type Conversation struct {
	Model  string
	System string
	// Step is the word after `errand-step:`; empty if there is none.
	Step string
	// Prompt is the newest user message that is not only tool results; First is the oldest.
	Prompt string
	First  string
	// Round counts the prompts of this step in the conversation, including this one.
	Round int
	// Turn counts the responses since Prompt.
	Turn int
	// Outputs are the tool results since Prompt, oldest first.
	Outputs []Output
	// Tools are the names of the tools that the client offers.
	Tools []string
	// Groups are the submatches of the rule's Match; Groups[0] is the whole match.
	Groups []string
}

// Output is one tool result.
type Output struct {
	Tool    string
	Text    string
	IsError bool
}

// Last returns the text of the newest tool result, or "".
func (c Conversation) Last() string {
	if len(c.Outputs) == 0 {
		return ""
	}
	return c.Outputs[len(c.Outputs)-1].Text
}

// Failed reports whether the newest tool result is an error.
func (c Conversation) Failed() bool {
	return len(c.Outputs) > 0 && c.Outputs[len(c.Outputs)-1].IsError
}

// request is the part of a request's body that the server uses.
type request struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages []message       `json:"messages"`
	Tools    []struct {
		Name string `json:"name"`
	} `json:"tools"`

	offer offer
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// part is one content block as sent by clients.
type part struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// parts reads a content field: a string, or a list of blocks.
func parts(raw json.RawMessage) ([]part, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []part{{Type: "text", Text: text}}, nil
	}
	var list []part
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("content is neither a string nor a list of blocks")
	}
	return list, nil
}

// joinText joins the text blocks of a content field, each on separate lines.
func joinText(list []part) string {
	var texts []string
	for _, p := range list {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// digest identifies the conversation's state; retries of a request have the same digest.
func (r request) digest() string {
	h := sha256.New()
	for _, m := range r.Messages {
		fmt.Fprintf(h, "%s %d\n", m.Role, len(m.Content))
		h.Write(m.Content)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// conversation reads the request from its first message to its last.
func (r request) conversation() (Conversation, error) {
	c := Conversation{Model: r.Model}
	if r.Model == "" {
		return c, errors.New("model: Field required")
	}
	if len(r.Messages) == 0 {
		return c, errors.New("messages: at least one message is required")
	}
	system, err := parts(r.System)
	if err != nil {
		return c, fmt.Errorf("system: %w", err)
	}
	c.System = joinText(system)
	for _, t := range r.Tools {
		c.Tools = append(c.Tools, t.Name)
	}
	steps := newStepCounter(c.System)
	names := map[string]string{}
	for i, m := range r.Messages {
		list, err := parts(m.Content)
		if err != nil {
			return c, fmt.Errorf("messages.%d: %w", i, err)
		}
		switch m.Role {
		case "assistant":
			c.Turn++
			for _, p := range list {
				if p.Type == "tool_use" {
					names[p.ID] = p.Name
				}
			}
		case "user":
			c.user(list, names, steps)
		}
	}
	c.Step, c.Round = steps.current, steps.rounds[steps.current]
	return c, nil
}

// user processes one user message.
func (c *Conversation) user(list []part, names map[string]string, steps *stepCounter) {
	prompt := promptText(list)
	if prompt != "" {
		if c.First == "" {
			c.First = prompt
		}
		c.Prompt, c.Turn, c.Outputs = prompt, 0, nil
		steps.prompt(prompt)
	}
	for _, p := range list {
		if p.Type != "tool_result" || prompt != "" {
			continue
		}
		inner, err := parts(p.Content)
		if err != nil {
			continue // a tool's output may have any shape
		}
		c.Outputs = append(c.Outputs, Output{Tool: names[p.ToolUseID], Text: joinText(inner), IsError: p.IsError})
	}
}

// promptText returns the text of a user message without automatic additions by the client.
func promptText(list []part) string {
	var own []part
	for _, p := range list {
		if p.Type == "text" && !strings.HasPrefix(strings.TrimSpace(p.Text), "<system-reminder>") {
			own = append(own, p)
		}
	}
	return joinText(own)
}

// stepCounter follows the steps of a conversation's prompts.
type stepCounter struct {
	current string
	rounds  map[string]int
}

func newStepCounter(system string) *stepCounter {
	return &stepCounter{current: findStep(system), rounds: map[string]int{}}
}

func (s *stepCounter) prompt(text string) {
	if step := findStep(text); step != "" {
		s.current = step
	}
	s.rounds[s.current]++
}

// findStep returns the word after the first `errand-step:` at the start of a line.
func findStep(text string) string {
	const marker = "errand-step:"
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, marker); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// choose returns the first matching rule and the turn that it plays now. It sets conv.Groups.
func choose(rules []rule, conv *Conversation) (rule, Turn, error) {
	for _, r := range rules {
		if !r.fits(*conv) {
			continue
		}
		if r.match != nil {
			conv.Groups = r.match.FindStringSubmatch(conv.Prompt)
		}
		n := conv.Turn
		if r.Repeat {
			n %= len(r.Turns)
		}
		if n >= len(r.Turns) {
			return r, Turn{}, fmt.Errorf("simmodel: %s has %d turns, and turn %d was asked for", r.Name, len(r.Turns), n)
		}
		return r, r.Turns[n], nil
	}
	return rule{}, Turn{}, fmt.Errorf("simmodel: no rule for step %q and prompt %.80q", conv.Step, conv.Prompt)
}

// fits reports whether the rule matches this conversation.
func (r rule) fits(c Conversation) bool {
	found := func(re *regexp.Regexp, text string) bool { return re == nil || re.MatchString(text) }
	return (r.Step == "" || r.Step == c.Step) &&
		(r.Round == 0 || r.Round == c.Round) &&
		found(r.match, c.Prompt) &&
		(r.not == nil || !r.not.MatchString(c.Prompt)) &&
		found(r.system, c.System)
}
