// Package callback handles the calls that agents make to errand through their tools during a run: a question to people,
// notes, proposed issues, the conclusion of the run, and requests for context.
//
// The input comes from an agent that may have been manipulated. It is bounded in size and number, cleaned like the
// agent's other text, and only stored with the task that the connection belongs to. A call changes no task's phase by
// itself and creates nothing on GitHub. Clients repeat a call if its answer was lost; a call that was already recorded
// is answered again but not counted again.
//
// Start here: [Service.Serve]. Package tools defines the form of calls.
package callback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// Store reads tasks and records calls.
type Store interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error)
}

// Config configures a Service. All fields are required.
type Config struct {
	Store Store
	// Clean redacts secrets and removes invisible characters from an agent's text.
	Clean func(text string) string
	// Issue returns the text of an issue of the task's repository, as far as the agent may see it. It returns
	// [ErrNotVisible] or [ErrUnknown] if there is none.
	Issue func(ctx context.Context, t *state.Task, number int) (string, error)
	Log   zerolog.Logger
}

// Reasons why an issue has no text: nobody with write access wrote or approved any of it, or it does not exist.
var (
	ErrNotVisible = errors.New("nobody with write access wrote or approved any of its text")
	ErrUnknown    = errors.New("there is no such issue or pull request in this repository")
)

// Service answers calls. It keeps no state of its own.
type Service struct{ cfg Config }

// New returns a Service.
func New(cfg Config) *Service {
	return &Service{cfg: cfg}
}

// callTimeout bounds the handling of one call.
const callTimeout = time.Minute

// refusal is an error whose text is shown to the agent.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// Serve answers a call of the task's active run. The caller has verified that the call comes from that run.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request, t *state.Task, tool string) {
	log := s.cfg.Log.With().Str("task", t.Key.String()).Str("run", t.Run.ID).Str("tool", tool).Logger()
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	text, err := s.handleCall(ctx, http.MaxBytesReader(w, r.Body, tools.MaxCall), t, tool)
	var refused refusal
	switch {
	case errors.As(err, &refused):
		log.Info().Msg("callback refused: " + refused.Error())
		s.writeAnswer(w, log, tools.Answer{Text: refused.Error(), Refused: true})
	case err != nil:
		log.Warn().Err(err).Msg("callback failed")
		http.Error(w, "errand: the call cannot be answered now", http.StatusServiceUnavailable)
	default:
		log.Debug().Msg("callback answered")
		s.writeAnswer(w, log, tools.Answer{Text: text})
	}
}

func (s *Service) writeAnswer(w http.ResponseWriter, log zerolog.Logger, a tools.Answer) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(a); err != nil {
		log.Debug().Err(err).Msg("failed to write the answer of a callback")
	}
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9-]{8,64}$`)

// handleCall parses and executes a call.
func (s *Service) handleCall(ctx context.Context, body io.Reader, t *state.Task, tool string) (string, error) {
	if !slices.Contains(tools.Names(), tool) {
		return "", refuse("errand has no tool of this name")
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return "", refuse("a call may have at most %d bytes", tools.MaxCall)
	}
	var in tools.Call
	if json.Unmarshal(data, &in) != nil || !idForm.MatchString(in.ID) {
		return "", refuse("the call cannot be read")
	}
	if tool == tools.Context {
		return s.answerContext(ctx, t, in)
	}
	call, err := s.parseCall(tool, in)
	if err != nil {
		return "", err
	}
	return s.recordCall(ctx, t, call)
}

// recordCall stores a call with the task, at most once, and returns the answer for the agent.
func (s *Service) recordCall(ctx context.Context, t *state.Task, call state.Call) (string, error) {
	run := t.Run.ID
	if why := t.CallRejection(run, call); why != "" {
		return "", refusal(why)
	}
	if !slices.Contains(t.Run.Calls, call.ID) {
		e := event.Event{Task: t.Key, Run: run, Payload: event.ToolCalled{Call: call}}
		if _, err := s.cfg.Store.Apply(ctx, e, store.Ack{}); err != nil {
			return "", fmt.Errorf("record the agent's call: %w", err)
		}
		after, err := s.cfg.Store.Task(ctx, t.Key)
		if err != nil {
			return "", fmt.Errorf("read the task after recording the call: %w", err)
		}
		if after == nil || after.Run == nil || after.Run.ID != run || !slices.Contains(after.Run.Calls, call.ID) {
			why := "this run has ended; its calls are rejected"
			if after != nil {
				why = firstNonEmpty(after.CallRejection(run, call), why)
			}
			return "", refusal(why)
		}
		t = after
	}
	switch call.Tool {
	case state.CallAsk:
		return "The question was posted. Stop now: call no tool, change nothing, and finish with one short sentence. This session continues when somebody has answered.", nil
	case state.CallNote:
		return "Stored.", nil
	case state.CallPropose:
		for _, p := range t.Proposed {
			if p.ID == call.ID {
				return fmt.Sprintf("Stored as proposal %d. People will see it and decide; do not work on it.", p.N), nil
			}
		}
		return "Stored.", nil
	}
	return "Stored. This replaces the closing block; people read your last message.", nil
}

func firstNonEmpty(texts ...string) string {
	i := slices.IndexFunc(texts, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(texts[i])
}
