// Package callback answers what agents say to errand through their tools while they work: a question to people,
// notes, proposed issues, how the run ends, and what they want to know.
//
// What comes here was written by an agent that may have been talked into anything. It is bounded in size and
// number, cleaned like its other words, and only ever kept with the task that the connection belongs to: a call
// moves no task by itself, and creates nothing on GitHub. Calls are repeated when their answer was lost, so one
// that was taken is answered again without being counted again.
//
// Start reading at Service.Serve. The form of calls is in package tools.
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
)

// Store keeps what agents say.
type Store interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	Apply(ctx context.Context, e state.Event, ack state.Ack) (state.Applied, error)
}

// Config configures a Service. All fields are required.
type Config struct {
	Store Store
	// Clean makes text of an agent fit to be kept: without secrets and without what nobody would see.
	Clean func(text string) string
	// Issue returns the text of an issue of the task's repository as far as the agent may see it. ErrUnseen and
	// ErrUnknown say why there is none.
	Issue func(ctx context.Context, t *state.Task, number int) (string, error)
	Log   zerolog.Logger
}

// Why there is no text of an issue: nobody whom errand trusts wrote or vouched for it; or it does not exist.
var (
	ErrUnseen  = errors.New("nothing of it was written, or vouched for, by people with write permission")
	ErrUnknown = errors.New("there is no such issue or pull request in this repository")
)

// Service answers calls. It remembers nothing by itself.
type Service struct{ cfg Config }

// New returns a Service.
func New(cfg Config) *Service {
	return &Service{cfg: cfg}
}

// callTimeout bounds the answering of a call, applyTimeout the keeping of what it says.
const callTimeout = time.Minute

// refusal is an error whose words are for the agent.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// Serve answers a call of the task's active run, which the caller has made sure that it comes from.
func (s *Service) Serve(w http.ResponseWriter, r *http.Request, t *state.Task, tool string) {
	log := s.cfg.Log.With().Str("task", t.Key.String()).Str("run", t.Run.ID).Str("tool", tool).Logger()
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	text, err := s.answer(ctx, http.MaxBytesReader(w, r.Body, tools.MaxCall), t, tool)
	var no refusal
	switch {
	case errors.As(err, &no):
		log.Info().Msg("callback: refused: " + no.Error())
		s.write(w, log, tools.Answer{Text: no.Error(), Refused: true})
	case err != nil:
		log.Warn().Err(err).Msg("callback")
		http.Error(w, "errand: this cannot be answered now", http.StatusServiceUnavailable)
	default:
		log.Debug().Msg("callback")
		s.write(w, log, tools.Answer{Text: text})
	}
}

func (s *Service) write(w http.ResponseWriter, log zerolog.Logger, a tools.Answer) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(a); err != nil {
		log.Debug().Err(err).Msg("callback: answer")
	}
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9-]{8,64}$`)

// answer reads a call and does what it says.
func (s *Service) answer(ctx context.Context, body io.Reader, t *state.Task, tool string) (string, error) {
	if !slices.Contains(tools.Names(), tool) {
		return "", refuse("errand has no tool of this name")
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return "", refuse("a call may have %d bytes", tools.MaxCall)
	}
	var in tools.Call
	if json.Unmarshal(data, &in) != nil || !idForm.MatchString(in.ID) {
		return "", refuse("the call cannot be read")
	}
	if tool == tools.Context {
		return s.context(ctx, t, in)
	}
	call, err := s.read(tool, in)
	if err != nil {
		return "", err
	}
	return s.keep(ctx, t, call)
}

// keep stores a call with the task, once, and says what it came to.
func (s *Service) keep(ctx context.Context, t *state.Task, call state.Call) (string, error) {
	run := t.Run.ID
	if why := t.Refuses(run, call); why != "" {
		return "", refusal(why)
	}
	if !slices.Contains(t.Run.Calls, call.ID) {
		e := state.Event{Kind: state.EventCalled, Task: t.Key, Run: run, Call: &call}
		if _, err := s.cfg.Store.Apply(ctx, e, state.Ack{}); err != nil {
			return "", fmt.Errorf("keep what the agent said: %w", err)
		}
		after, err := s.cfg.Store.Task(ctx, t.Key)
		if err != nil {
			return "", fmt.Errorf("look at what was kept: %w", err)
		}
		if after == nil || after.Run == nil || after.Run.ID != run || !slices.Contains(after.Run.Calls, call.ID) {
			why := "this run is over; nothing is taken from it any more"
			if after != nil {
				why = firstOf(after.Refuses(run, call), why)
			}
			return "", refusal(why)
		}
		t = after
	}
	switch call.Tool {
	case state.CallAsk:
		return "The question is with the people who can answer it. End now: call no tool, change nothing, and finish with one short sentence. You go on in this session when somebody has answered.", nil
	case state.CallNote:
		return "Kept.", nil
	case state.CallPropose:
		for _, p := range t.Proposed {
			if p.ID == call.ID {
				return fmt.Sprintf("Kept as proposal %d. People are told of it and decide; do not work on it.", p.N), nil
			}
		}
		return "Kept.", nil
	}
	return "Noted. It counts instead of a closing block; your last message is what people read.", nil
}

func firstOf(texts ...string) string {
	i := slices.IndexFunc(texts, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(texts[i])
}
