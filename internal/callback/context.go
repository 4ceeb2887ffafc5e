package callback

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// maxContext bounds an answer in bytes.
const maxContext = 100_000

// answerContext returns the context that the agent asked for.
func (s *Service) answerContext(ctx context.Context, t *state.Task, call tools.Call) (string, error) {
	var in tools.ContextInput
	if err := decodeArguments(call.Arguments, &in); err != nil {
		return "", err
	}
	if err := s.recordRead(ctx, t, state.Call{ID: call.ID, Tool: state.CallContext}); err != nil {
		return "", err
	}
	text := ""
	switch in.Kind {
	case "notes":
		text = notes(t)
	case "checks":
		text = checks(t)
	case "issue":
		if in.Number < 1 {
			return "", refuse("number must be the number of an issue")
		}
		var err error
		text, err = s.cfg.Issue(ctx, t, in.Number)
		if errors.Is(err, ErrNotVisible) || errors.Is(err, ErrUnknown) {
			return "", refuse("#%d: %v", in.Number, err)
		}
		if err != nil {
			return "", fmt.Errorf("read #%d: %w", in.Number, err)
		}
	default:
		return "", refuse("kind must be notes, checks or issue")
	}
	if len(text) > maxContext {
		text = strings.ToValidUTF8(text[:maxContext], "") + "\n(the rest is omitted)"
	}
	return text, nil
}

// recordRead records a context call with the task, so that the limit per run survives a restart of errand.
func (s *Service) recordRead(ctx context.Context, t *state.Task, call state.Call) error {
	if why := t.CallRejection(t.Run.ID, call); why != "" {
		return refusal(why)
	}
	done, err := s.cfg.Store.Apply(ctx, event.Event{Task: t.Key, Run: t.Run.ID, Payload: event.ToolCalled{Call: call}}, store.Ack{})
	if err != nil {
		return fmt.Errorf("record the request for context: %w", err)
	}
	if !done.Changed { // other calls reached the limit meanwhile
		return refuse("only an active run may ask for context, at most %d times", state.MaxReads)
	}
	return nil
}

// notes formats the notes that agents stored for the task.
func notes(t *state.Task) string {
	if len(t.Notes) == 0 {
		return "There are no notes so far."
	}
	var b strings.Builder
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "- %s (%s): %s\n", n.Kind, n.At.UTC().Format("2006-01-02 15:04 UTC"), n.Text)
	}
	return b.String()
}

// checks formats the newest results of the repository's own commands.
func checks(t *state.Task) string {
	var list []state.CheckResult
	if t.Work != nil {
		list = t.Work.Checks
	}
	var b strings.Builder
	for _, c := range list {
		result := fmt.Sprintf("exit code %d", c.Code)
		if c.TimedOut {
			result = "timed out"
		} else if c.Skipped != "" {
			result = "skipped, " + c.Skipped
		}
		fmt.Fprintf(&b, "## %s: %s\n\n%s\n\n", firstNonEmpty(c.Name, c.Command), result, c.Tail)
	}
	for _, f := range t.Feedback { // of commits that are being fixed
		switch f.Kind {
		case state.FeedbackChecks:
			fmt.Fprintf(&b, "## Failed last time\n\n%s\n\n", f.Body)
		case state.FeedbackCI: // in the prompt, as data
			fmt.Fprintf(&b, "## Failed on GitHub\n\nItem %s of the feedback.\n\n", f.ID)
		}
	}
	if b.Len() == 0 {
		return "No checks were run on this work yet."
	}
	return b.String()
}
