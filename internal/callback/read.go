package callback

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/state"
)

// Maximum lengths in characters, and maximum numbers of list entries.
const (
	maxQuestion = 4_000
	maxOption   = 200
	maxOptions  = 6
	maxNote     = 1_000
	maxTitle    = 200
	maxBody     = 6_000
	maxField    = 4_000
	maxLabel    = 300
	maxList     = 200
	maxChoices  = 3
)

// parseCall parses and validates the arguments of a call.
func (s *Service) parseCall(tool string, in tools.Call) (state.Call, error) {
	call := state.Call{ID: in.ID, Tool: state.CallTool(tool)}
	switch tool {
	case tools.Ask:
		var a tools.AskInput
		if err := decodeArguments(in.Arguments, &a); err != nil {
			return call, err
		}
		out := &state.Conclusion{Outcome: state.OutcomeQuestion}
		err := firstError(
			s.cleanText("question", a.Question, 1, maxQuestion, &out.Question),
			s.cleanList("options", a.Options, maxOptions, maxOption, &out.Options))
		call.Result = out
		return call, err
	case tools.Note:
		var n tools.NoteInput
		if err := decodeArguments(in.Arguments, &n); err != nil {
			return call, err
		}
		call.Note = &state.Note{Kind: state.NoteKind(n.Kind)}
		if !slices.Contains([]state.NoteKind{state.NoteFact, state.NoteDecision, state.NoteStep}, call.Note.Kind) {
			return call, refuse("kind must be fact, decision or step_done")
		}
		return call, s.cleanText("text", n.Text, 1, maxNote, &call.Note.Text)
	case tools.Propose:
		var p tools.ProposeInput
		if err := decodeArguments(in.Arguments, &p); err != nil {
			return call, err
		}
		call.Proposal = &state.Proposal{}
		err := firstError(
			s.cleanLine("title", p.Title, 1, maxTitle, &call.Proposal.Title),
			s.cleanText("body", p.Body, 1, maxBody, &call.Proposal.Body))
		return call, err
	}
	var f tools.FinishInput
	if err := decodeArguments(in.Arguments, &f); err != nil {
		return call, err
	}
	var err error
	call.Result, err = s.parseConclusion(f)
	return call, err
}

// parseConclusion validates the conclusion of a run.
func (s *Service) parseConclusion(f tools.FinishInput) (*state.Conclusion, error) {
	outcome := state.Outcome(f.Outcome)
	if !slices.Contains(state.Outcomes(), outcome) {
		var names []string
		for _, o := range state.Outcomes() {
			names = append(names, string(o))
		}
		return nil, refuse("outcome must be one of %s", strings.Join(names, ", "))
	}
	if (outcome == state.OutcomeQuestion || outcome == state.OutcomeBlocked) && strings.TrimSpace(f.Question) == "" {
		return nil, refuse("the outcome %s requires the field question: what people have to answer", f.Outcome)
	}
	out := &state.Conclusion{Outcome: outcome}
	err := firstError(
		s.cleanText("question", f.Question, 0, maxQuestion, &out.Question), s.cleanLine("title", f.Title, 0, maxLabel, &out.Title),
		s.cleanText("summary", f.Summary, 0, maxField, &out.Summary), s.cleanText("changes", f.Changes, 0, maxField, &out.Changes),
		s.cleanLine("estimate", f.Estimate, 0, maxLabel, &out.Estimate),
		s.cleanList("files", f.Files, maxList, maxLabel, &out.Files), s.cleanList("approaches", f.Approaches, maxChoices, maxLabel, &out.Choices),
	)
	if err != nil {
		return nil, err
	}
	if len(out.Choices) == 1 {
		out.Choices = nil // there is nothing to choose
	}
	if len(f.Threads) > maxList {
		return nil, refuse("threads may have at most %d entries", maxList)
	}
	seen := map[string]bool{}
	for _, th := range f.Threads {
		a := state.ThreadAnswer{}
		err := firstError(
			s.cleanLine("id", th.ID, 1, maxLabel, &a.ID),
			s.cleanText("answer", th.Answer, 1, maxField, &a.Answer),
			s.cleanLine("commit", th.Commit, 0, maxLabel, &a.Commit))
		switch {
		case err != nil:
			return nil, err
		case seen[a.ID]:
			return nil, refuse("threads has the id %q twice", a.ID)
		}
		seen[a.ID] = true
		out.Threads = append(out.Threads, a)
	}
	return out, nil
}

// decodeArguments decodes a tool's arguments and ignores unknown fields.
func decodeArguments(raw json.RawMessage, to any) error {
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(to); err != nil {
		return refuse("the arguments cannot be read")
	}
	return nil
}

// cleanText stores the cleaned value in to, or refuses one that is too short or too long, in characters.
func (s *Service) cleanText(name, value string, least, most int, to *string) error {
	if n := utf8.RuneCountInString(value); n > most {
		return refuse("%s has %d characters; the maximum is %d", name, n, most)
	}
	*to = strings.TrimSpace(s.cfg.Clean(value))
	if utf8.RuneCountInString(*to) < least {
		return refuse("%s is missing", name)
	}
	return nil
}

// cleanLine is cleanText with all white space collapsed into one line.
func (s *Service) cleanLine(name, value string, least, most int, to *string) error {
	err := s.cleanText(name, value, least, most, to)
	*to = strings.Join(strings.Fields(*to), " ")
	return err
}

// cleanList cleans several lines and drops empty ones.
func (s *Service) cleanList(name string, values []string, most, each int, to *[]string) error {
	if len(values) > most {
		return refuse("%s has %d entries; the maximum is %d", name, len(values), most)
	}
	for _, v := range values {
		var l string
		if err := s.cleanLine(name, v, 0, each, &l); err != nil {
			return err
		}
		if l != "" {
			*to = append(*to, l)
		}
	}
	return nil
}

// firstError returns the first non-nil error.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
