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

// How many characters an agent may say in each place, and how many entries lists may have.
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

// read makes what a call says of its arguments.
func (s *Service) read(tool string, in tools.Call) (state.Call, error) {
	call := state.Call{ID: in.ID, Tool: state.CallTool(tool)}
	switch tool {
	case tools.Ask:
		var a tools.AskInput
		if err := arguments(in.Arguments, &a); err != nil {
			return call, err
		}
		out := &state.Conclusion{Outcome: "question"}
		err := first(s.text("question", a.Question, 1, maxQuestion, &out.Question), s.list("options", a.Options, maxOptions, maxOption, &out.Options))
		call.Result = out
		return call, err
	case tools.Note:
		var n tools.NoteInput
		if err := arguments(in.Arguments, &n); err != nil {
			return call, err
		}
		call.Note = &state.Note{Kind: state.NoteKind(n.Kind)}
		if !slices.Contains([]state.NoteKind{state.NoteFact, state.NoteDecision, state.NoteStep}, call.Note.Kind) {
			return call, refuse("kind must be fact, decision or step_done")
		}
		return call, s.text("text", n.Text, 1, maxNote, &call.Note.Text)
	case tools.Propose:
		var p tools.ProposeInput
		if err := arguments(in.Arguments, &p); err != nil {
			return call, err
		}
		call.Proposal = &state.Proposal{}
		err := first(s.line("title", p.Title, 1, maxTitle, &call.Proposal.Title), s.text("body", p.Body, 1, maxBody, &call.Proposal.Body))
		return call, err
	}
	var f tools.FinishInput
	if err := arguments(in.Arguments, &f); err != nil {
		return call, err
	}
	var err error
	call.Result, err = s.conclusion(f)
	return call, err
}

// conclusion reads how a run ends.
func (s *Service) conclusion(f tools.FinishInput) (*state.Conclusion, error) {
	kinds := []string{"build", "report", "already_fixed", "not_reproducible", "question", "blocked", "done"}
	if !slices.Contains(kinds, f.Outcome) {
		return nil, refuse("outcome must be one of %s", strings.Join(kinds, ", "))
	}
	if (f.Outcome == "question" || f.Outcome == "blocked") && strings.TrimSpace(f.Question) == "" {
		return nil, refuse("with the outcome %s, question says what people have to answer", f.Outcome)
	}
	out := &state.Conclusion{Outcome: f.Outcome}
	err := first(
		s.text("question", f.Question, 0, maxQuestion, &out.Question), s.line("title", f.Title, 0, maxLabel, &out.Title),
		s.text("summary", f.Summary, 0, maxField, &out.Summary), s.text("changes", f.Changes, 0, maxField, &out.Changes),
		s.line("estimate", f.Estimate, 0, maxLabel, &out.Estimate),
		s.list("files", f.Files, maxList, maxLabel, &out.Files), s.list("approaches", f.Approaches, maxChoices, maxLabel, &out.Choices),
	)
	if err != nil {
		return nil, err
	}
	if len(out.Choices) == 1 {
		out.Choices = nil // there is nothing to choose
	}
	if len(f.Threads) > maxList {
		return nil, refuse("threads may have %d entries", maxList)
	}
	seen := map[string]bool{}
	for _, th := range f.Threads {
		a := state.ThreadAnswer{}
		err := first(s.line("id", th.ID, 1, maxLabel, &a.ID), s.text("answer", th.Answer, 1, maxField, &a.Answer), s.line("commit", th.Commit, 0, maxLabel, &a.Commit))
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

// arguments reads a tool's arguments; what it does not know is left out.
func arguments(raw json.RawMessage, to any) error {
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(to); err != nil {
		return refuse("the arguments cannot be read")
	}
	return nil
}

// text cleans a text and refuses one that is too short or too long.
func (s *Service) text(name, value string, least, most int, to *string) error {
	if n := utf8.RuneCountInString(value); n > most {
		return refuse("%s has %d characters; at most %d are taken", name, n, most)
	}
	*to = strings.TrimSpace(s.cfg.Clean(value))
	if utf8.RuneCountInString(*to) < least {
		return refuse("%s is missing", name)
	}
	return nil
}

// line is text on one line.
func (s *Service) line(name, value string, least, most int, to *string) error {
	err := s.text(name, value, least, most, to)
	*to = strings.Join(strings.Fields(*to), " ")
	return err
}

// list reads several lines; empty ones are left out.
func (s *Service) list(name string, values []string, most, each int, to *[]string) error {
	if len(values) > most {
		return refuse("%s has %d entries; at most %d are taken", name, len(values), most)
	}
	for _, v := range values {
		var l string
		if err := s.line(name, v, 0, each, &l); err != nil {
			return err
		}
		if l != "" {
			*to = append(*to, l)
		}
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
