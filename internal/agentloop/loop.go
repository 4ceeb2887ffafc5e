// Package agentloop is errand's own agent: a loop that asks a model over the Messages API, runs the
// tools that it calls, and prints what happens as lines of package wire. It runs on a VM, as
// `errand-runner agent`, and is what the adapter `api` drives.
//
// The model gets a shell and a text editor. The editor keeps to the checkout, whatever links lie in
// it; the shell can do what its user can do, and no rule here makes a boundary: that is the VM's
// affair. A conversation is kept in one file of the agent's home and can be resumed from there after
// any end, a kill in the middle of a line included.
//
// It holds no key. The token that it shows to the model is the run's, from a file that only its user
// can read, and never in an argument. Start reading at Run, then loop.work.
package agentloop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// Options are what a run needs besides its settings. Zero values are production's.
type Options struct {
	// Retries is how often a model call is tried again; default 5, negative means never.
	Retries int
	// RetryWait is the wait before the first retry, which doubles from one to the next; default 500 ms.
	RetryWait time.Duration
	// Env is the environment of the tools.
	Env []string
	// NewID makes session ids.
	NewID func() string
	// Now is the clock.
	Now func() time.Time
}

// maxTokens bounds one answer of the model.
const maxTokens = 32_000

// loop is one run.
type loop struct {
	set    wire.Settings
	opt    Options
	out    *printer
	tools  *toolbox
	sess   *session
	api    anthropic.MessageService
	schema *answerSchema

	turns    int
	text     string // the newest answer's
	repaired bool   // the one reminder about the structured answer was given
}

// end is how a loop ends; as an error it ends the loop.
type end struct{ wire.Result }

func (e *end) Error() string { return e.Cause + ": " + e.Message }

func ends(cause, message string) *end {
	return &end{wire.Result{Cause: cause, Message: message}}
}

// Run works one prompt off and prints lines to out, the last of which is the result, whatever
// happens. It returns the exit code: 0 if the model finished, 130 if ctx ended, else 1. Every tool
// that it started in the foreground is gone when it returns.
func Run(ctx context.Context, set wire.Settings, prompt string, out io.Writer, opt Options) int {
	l := &loop{set: set, opt: opt.withDefaults(), out: newPrinter(out)}
	err := l.open(ctx)
	if err == nil {
		err = l.work(ctx, prompt)
	}
	if l.tools != nil {
		l.tools.close()
	}
	if l.sess != nil {
		err = errors.Join(err, l.sess.close())
	}
	return l.finish(ctx, err)
}

func (o Options) withDefaults() Options {
	if o.Retries == 0 {
		o.Retries = 5
	}
	if o.RetryWait <= 0 {
		o.RetryWait = 500 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// open checks the settings, and opens the session and the workspace.
func (l *loop) open(ctx context.Context) error {
	var err error
	if l.schema, err = newAnswerSchema(l.set.Schema); err != nil {
		return ends(wire.CauseInvalid, err.Error())
	}
	if l.tools, err = newToolbox(ctx, l.set, l.opt.Env, l.schema); err != nil {
		return ends(wire.CauseInvalid, err.Error())
	}
	if l.sess, err = openSession(l.set, l.opt.NewID); err != nil {
		return err
	}
	l.api = newService(l.set)
	return nil
}

// work asks and runs tools until there is an end. It returns nil when the model has finished.
func (l *loop) work(ctx context.Context, prompt string) error {
	l.out.print(wire.Line{Type: wire.TypeStarted, Session: l.sess.id, Model: l.set.Model})
	if strings.TrimSpace(prompt) == "" {
		return ends(wire.CauseInvalid, "the prompt is empty")
	}
	if err := l.sess.add(anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))); err != nil {
		return err
	}
	for l.turns < l.set.MaxTurns {
		answer, err := l.ask(ctx)
		if err != nil {
			return err
		}
		l.turns++
		if err := l.take(answer); err != nil {
			return err
		}
		done, err := l.react(ctx, answer)
		if done || err != nil {
			return err
		}
	}
	return ends(wire.CauseMaxTurns, fmt.Sprintf("the run's %d turns were used up", l.set.MaxTurns))
}

// take prints an answer and stores it.
func (l *loop) take(answer *anthropic.Message) error {
	u := answer.Usage
	l.out.print(wire.Line{Type: wire.TypeUsage, Usage: &wire.Usage{
		Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens,
	}})
	var texts []string
	for _, b := range answer.Content {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
			l.out.print(wire.Line{Type: wire.TypeText, Text: b.Text})
		case "thinking":
			l.out.print(wire.Line{Type: wire.TypeThinking, Text: b.Thinking})
		case "tool_use":
			l.out.print(wire.Line{Type: wire.TypeToolUse, ID: b.ID, Name: b.Name, Input: b.Input})
		}
	}
	l.text = strings.Join(texts, "\n\n")
	if len(answer.Content) == 0 {
		return nil // the API refuses empty messages
	}
	return l.sess.add(answer.ToParam())
}

// react does what an answer calls for. Done means that the model has finished.
func (l *loop) react(ctx context.Context, answer *anthropic.Message) (done bool, err error) {
	results, calls := l.call(ctx, answer)
	if calls > 0 {
		if err := l.sess.add(anthropic.NewUserMessage(results...)); err != nil {
			return false, err
		}
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case l.schema.answered():
		return true, nil
	case calls > 0:
		return false, nil
	}
	switch answer.StopReason {
	case anthropic.StopReasonRefusal:
		return false, ends(wire.CauseRefused, "the model declined to answer")
	case "model_context_window_exceeded":
		return false, ends(wire.CauseContextOverflow, "the conversation does not fit the model any more")
	case anthropic.StopReasonMaxTokens:
		return false, l.say("Your answer was cut off because it was too long. Go on where it ends, in smaller pieces.")
	case anthropic.StopReasonPauseTurn:
		return false, l.say("Go on.")
	}
	if l.schema == nil || l.schema.extract(l.text) {
		return true, nil
	}
	if l.repaired {
		return false, ends(wire.CauseNoAnswer, "the model gave no answer of the form that was asked for"+l.schema.why())
	}
	l.repaired = true
	return false, l.say("Give your answer by calling the tool " + wire.ToolAnswer + ", and nothing else." + l.schema.why())
}

// say adds words of the loop's own to the conversation.
func (l *loop) say(text string) error {
	l.out.print(wire.Line{Type: wire.TypeNotice, Text: text})
	// The tag tells the model, and whoever reads along, that no person said this.
	return l.sess.add(anthropic.NewUserMessage(anthropic.NewTextBlock("<system-reminder>" + text + "</system-reminder>")))
}

// call runs every call of an answer, one after the other. Each gets a result, also when the run is
// being stopped: a conversation with a call that has none cannot be resumed.
func (l *loop) call(ctx context.Context, answer *anthropic.Message) (results []anthropic.ContentBlockParamUnion, calls int) {
	for _, b := range answer.Content {
		if b.Type != "tool_use" {
			continue
		}
		calls++
		var r toolResult
		switch {
		case ctx.Err() != nil:
			r = toolResult{interrupted, true}
		case answer.StopReason == anthropic.StopReasonMaxTokens:
			r = toolResult{"The call was cut off because the answer was too long. Do it in smaller pieces.", true}
		default:
			r = l.tools.run(ctx, b.Name, b.Input)
		}
		l.out.print(wire.Line{Type: wire.TypeToolResult, ID: b.ID, Text: r.text, IsError: r.failed})
		results = append(results, anthropic.NewToolResultBlock(b.ID, r.text, r.failed))
	}
	return results, calls
}

// finish prints the result.
func (l *loop) finish(ctx context.Context, err error) int {
	r := wire.Result{Cause: wire.CauseOK}
	var known *end
	switch {
	case ctx.Err() != nil:
		r.Cause, r.Message = wire.CauseInterrupted, "the run was interrupted"
	case errors.As(err, &known):
		r = known.Result
	case err != nil:
		r.Cause, r.Message = wire.CauseCrashed, err.Error()
	}
	r.Text, r.Turns = l.text, l.turns
	if l.schema.answered() && r.Cause == wire.CauseOK {
		r.Structured = l.schema.answer
	}
	if l.sess != nil {
		r.Session = l.sess.id
	}
	if l.tools != nil {
		r.Denials = l.tools.denials
	}
	l.out.print(wire.Line{Type: wire.TypeResult, Result: &r})
	switch r.Cause {
	case wire.CauseOK:
		return 0
	case wire.CauseInterrupted:
		return 130
	}
	return 1
}
