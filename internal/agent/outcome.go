package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// OutcomeKind is the conclusion of an agent.
type OutcomeKind string

// The conclusions. The caller decides which of them a step allows.
const (
	OutcomeBuild           OutcomeKind = "build"            // there is something to build, as planned above
	OutcomeReport          OutcomeKind = "report"           // the text is the answer; nothing needs to be built
	OutcomeAlreadyFixed    OutcomeKind = "already_fixed"    // the base already contains it
	OutcomeNotReproducible OutcomeKind = "not_reproducible" // the problem could not be reproduced
	OutcomeQuestion        OutcomeKind = "question"         // a person must answer Question first
	OutcomeBlocked         OutcomeKind = "blocked"          // the agent cannot continue
	OutcomeDone            OutcomeKind = "done"             // the work is done
	OutcomeRevised         OutcomeKind = "revised"          // the text is the next revision of the plan
	OutcomeAnswered        OutcomeKind = "answered"         // the text answers comments; nothing changes
	OutcomeUnchanged       OutcomeKind = "unchanged"        // the comments need neither an answer nor a change
)

// OutcomeKinds returns all kinds, in the order above.
func OutcomeKinds() []OutcomeKind {
	return []OutcomeKind{
		OutcomeBuild, OutcomeReport, OutcomeAlreadyFixed, OutcomeNotReproducible, OutcomeQuestion, OutcomeBlocked, OutcomeDone,
		OutcomeRevised, OutcomeAnswered, OutcomeUnchanged,
	}
}

// Outcome is the part of an agent's final answer for the orchestrator: a fenced code block with the info string errand,
// which contains one JSON object. Every field may be missing. All of it is untrusted.
type Outcome struct {
	// Kind is empty if the agent gave none; see [Outcome.Or].
	Kind     OutcomeKind `json:"outcome"`
	Question string      `json:"question,omitempty"`
	Title    string      `json:"title,omitempty"`
	Summary  string      `json:"summary,omitempty"`
	Changes  string      `json:"changes,omitempty"` // what a revision changed, in a sentence or two
	// Threads answers review threads, by the ids in the prompt; each id occurs at most once.
	Threads []ThreadAnswer `json:"threads,omitempty"`
	// Files are the paths that are expected to change.
	Files    []string  `json:"files,omitempty"`
	Estimate *Estimate `json:"estimate,omitempty"`
	// Approaches are the choices of a plan. Numbers are unique and at least 1.
	Approaches []Approach `json:"approaches,omitempty"`
}

// Or returns the kind, or the given one if the agent left it out.
func (o Outcome) Or(kind OutcomeKind) OutcomeKind { return cmp.Or(o.Kind, kind) }

// ThreadAnswer is the answer to one review thread, with the commit that addressed it, if any.
type ThreadAnswer struct {
	ID     Label  `json:"id"`
	Answer string `json:"answer"`
	Commit string `json:"commit,omitempty"`
}

// Estimate is the agent's estimate of the work. Unknown values are 0 or empty.
type Estimate struct {
	Size    string  `json:"size,omitempty"` // such as S, M, L
	Minutes float64 `json:"minutes,omitempty"`
	Turns   float64 `json:"turns,omitempty"`
	CostUSD float64 `json:"cost_usd,omitempty"`
	// Words is the whole estimate if the agent wrote text instead of an object.
	Words string `json:"words,omitempty"`
}

// UnmarshalJSON accepts an object or a plain sentence.
func (e *Estimate) UnmarshalJSON(data []byte) error {
	if isString(data) {
		return json.Unmarshal(data, &e.Words)
	}
	type plain Estimate
	return json.Unmarshal(data, (*plain)(e))
}

// Approach is one possible solution.
type Approach struct {
	N     int    `json:"n"`
	Title string `json:"title"`
}

// UnmarshalJSON accepts an object or a plain title, which is numbered by its position.
func (a *Approach) UnmarshalJSON(data []byte) error {
	if isString(data) {
		return json.Unmarshal(data, &a.Title)
	}
	type plain Approach
	return json.Unmarshal(data, (*plain)(a))
}

func isString(data []byte) bool { return len(data) > 0 && data[0] == '"' }

// Label is an id that may be written as a string or a number.
type Label string

// UnmarshalJSON accepts both forms.
func (l *Label) UnmarshalJSON(data []byte) error {
	var n json.Number
	if len(data) > 0 && data[0] != '"' && json.Unmarshal(data, &n) == nil {
		*l = Label(n)
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("an id must be a string or a number, not %.40s", data)
	}
	*l = Label(s)
	return nil
}

// maxOutcome bounds the block in bytes.
const maxOutcome = 512 << 10

// ParseOutcome extracts the errand block from an agent's final answer, and returns it and the remaining text. Without a
// block, the Outcome is empty. If there are several blocks, the last one counts and all are removed. The error
// describes a problem of the block in words for the agent; rest is valid even then.
func ParseOutcome(text string) (o Outcome, rest string, err error) {
	block, rest, found := cutBlock(text)
	if !found {
		return Outcome{}, rest, nil
	}
	if len(block) > maxOutcome {
		return Outcome{}, rest, fmt.Errorf("the errand block has %d bytes; at most %d are read", len(block), maxOutcome)
	}
	dec := json.NewDecoder(strings.NewReader(block))
	if err := dec.Decode(&o); err != nil {
		return Outcome{}, rest, fmt.Errorf("the errand block is not the requested JSON: %w", explain(err, block))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Outcome{}, rest, errors.New("the errand block contains more than one JSON object")
	}
	if err := o.check(); err != nil {
		return Outcome{}, rest, fmt.Errorf("the errand block: %w", err)
	}
	return o, rest, nil
}

// explain adds the line number to a JSON error, and names fields as the agent wrote them.
func explain(err error, block string) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early")
	case errors.As(err, &syntax):
		line := 1 + strings.Count(block[:min(int(syntax.Offset), len(block))], "\n")
		return fmt.Errorf("line %d: %w", line, err)
	case errors.As(err, &kind):
		return fmt.Errorf("%s must not be a %s", cmp.Or(kind.Field, "the block"), kind.Value)
	}
	return err
}

// check refuses ambiguous outcomes.
func (o *Outcome) check() error {
	if o.Kind != "" && !slices.Contains(OutcomeKinds(), o.Kind) {
		return fmt.Errorf("outcome %.40q is unknown; use one of %s", o.Kind, kindList())
	}
	seen := map[Label]bool{}
	for i, t := range o.Threads {
		if t.ID == "" || seen[t.ID] {
			return fmt.Errorf("threads[%d]: the id %.80q is missing or occurs twice", i, t.ID)
		}
		seen[t.ID] = true
	}
	return o.numberApproaches()
}

// numberApproaches numbers the approaches by position if none has a number, and sorts them.
func (o *Outcome) numberApproaches() error {
	if !slices.ContainsFunc(o.Approaches, func(a Approach) bool { return a.N != 0 }) {
		for i := range o.Approaches {
			o.Approaches[i].N = i + 1
		}
	}
	numbers := map[int]bool{}
	for i, a := range o.Approaches {
		if a.N < 1 || numbers[a.N] {
			return fmt.Errorf("approaches[%d]: the number %d is below 1 or occurs twice", i, a.N)
		}
		numbers[a.N] = true
	}
	slices.SortStableFunc(o.Approaches, func(a, b Approach) int { return cmp.Compare(a.N, b.N) })
	return nil
}

func kindList() string {
	var b bytes.Buffer
	for i, k := range OutcomeKinds() {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(k))
	}
	return b.String()
}

// cutBlock removes every errand block outside of other code blocks and returns the last one.
func cutBlock(text string) (block, rest string, found bool) {
	var kept, inner strings.Builder
	fence, ours := "", false
	for line := range strings.SplitAfterSeq(text, "\n") {
		mark, info := fenceOf(line)
		switch {
		case fence == "" && mark != "":
			fence, ours = mark, isErrand(info)
			if ours {
				inner.Reset()
				found = true
				continue
			}
		case fence != "" && info == "" && len(mark) >= len(fence) && mark[0] == fence[0]:
			fence = ""
			if ours {
				block, ours = inner.String(), false
				continue
			}
		}
		if ours {
			inner.WriteString(line)
		} else {
			kept.WriteString(line)
		}
	}
	if ours {
		block = inner.String() // the fence was never closed
	}
	return block, strings.TrimSpace(kept.String()), found
}

func isErrand(info string) bool {
	word, _, _ := strings.Cut(info, " ")
	return word == "errand"
}

// fenceOf returns the fence that a line consists of, and its info string.
func fenceOf(line string) (mark, info string) {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 || trimmed == "" || (trimmed[0] != '`' && trimmed[0] != '~') {
		return "", ""
	}
	n := len(trimmed) - len(strings.TrimLeft(trimmed, trimmed[:1]))
	info = strings.TrimSpace(trimmed[n:])
	if n < 3 || (trimmed[0] == '`' && strings.Contains(info, "`")) {
		return "", ""
	}
	return trimmed[:n], info
}
