// Package agentloop is errand's own agent: a loop that calls a model over the Messages API, runs the tools that the
// model calls, and prints events as lines of package wire. It runs on a VM as `errand-runner agent`; the adapter `api`
// drives it.
//
// The model gets a shell and a text editor. The editor is limited to the checkout, whatever links it contains; the
// shell can do everything that its user can. The rules here are not a security boundary; the VM is. A conversation is
// stored in one file in the agent's home and can be resumed after any end, including a kill in the middle of a line.
//
// The loop holds no API key. It authenticates with the run's token, which comes from a file that only its user can
// read, never from an argument.
//
// Start here: [Run], then loop.work.
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
	"github.com/errand-bot/errand/internal/runlog"
)

// Options are the parameters of a run besides its settings. Zero values are the production defaults.
type Options struct {
	// Retries is the maximum number of retries of a model call; default 5, negative means none.
	Retries int
	// RetryWait is the wait before the first retry, which doubles each time; default 500 ms.
	RetryWait time.Duration
	// PictureBytes limits the pictures of a conversation in bytes as they are sent; default 20 MiB. The gateway allows 32 MiB
	// for a whole request.
	PictureBytes int
	// Env is the environment of the tools.
	Env []string
	// NewID generates session ids.
	NewID func() string
	// Now returns the current time.
	Now func() time.Time
}

// maxTokens bounds one answer of the model.
const maxTokens = 32_000

// loop is the state of one run.
type loop struct {
	set    wire.Settings
	opt    Options
	out    *printer
	tools  *toolbox
	sess   *session
	api    anthropic.MessageService
	schema *answerSchema

	turns    int
	text     string // text of the newest answer
	repaired bool   // the reminder about the structured answer was given
}

// end is the result of a loop, as an error that ends it.
type end struct{ wire.Result }

func (e *end) Error() string { return e.Cause + ": " + e.Message }

func newEnd(cause, message string) *end {
	return &end{wire.Result{Cause: cause, Message: message}}
}

// Run processes one prompt and prints lines to out, the last of which is always the result. It returns the exit code: 0
// if the model finished, 130 if ctx ended, else 1. All tools that it started in the foreground have ended when it
// returns.
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
	if o.PictureBytes <= 0 {
		o.PictureBytes = 20 << 20
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
		return newEnd(wire.CauseInvalid, err.Error())
	}
	if l.tools, err = newToolbox(ctx, l.set, l.opt.Env, l.schema); err != nil {
		return newEnd(wire.CauseInvalid, err.Error())
	}
	if l.sess, err = openSession(l.set, l.opt.NewID); err != nil {
		return err
	}
	l.api = newService(l.set)
	return nil
}

// work calls the model and runs tools until the run ends. It returns nil when the model has finished.
func (l *loop) work(ctx context.Context, prompt string) error {
	l.out.print(wire.Line{Type: wire.TypeStarted, Session: l.sess.id, Model: l.set.Model})
	if strings.TrimSpace(prompt) == "" {
		return newEnd(wire.CauseInvalid, "the prompt is empty")
	}
	if err := l.sess.add(anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))); err != nil {
		return err
	}
	for l.set.MaxTurns == 0 || l.turns < l.set.MaxTurns {
		answer, err := l.callModel(ctx)
		if err != nil {
			return err
		}
		l.turns++
		if err := l.storeAnswer(answer); err != nil {
			return err
		}
		done, err := l.handleAnswer(ctx, answer)
		if done || err != nil {
			return err
		}
	}
	return newEnd(wire.CauseMaxTurns, fmt.Sprintf("the run's %d turns were used up", l.set.MaxTurns))
}

// storeAnswer prints an answer and adds it to the session.
func (l *loop) storeAnswer(answer *anthropic.Message) error {
	u := answer.Usage
	l.out.print(wire.Line{Type: wire.TypeUsage, Usage: &runlog.Usage{
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

// handleAnswer runs the tools that an answer calls. done means that the model has finished.
func (l *loop) handleAnswer(ctx context.Context, answer *anthropic.Message) (done bool, err error) {
	results, calls := l.runCalls(ctx, answer)
	if calls > 0 {
		if err := l.sess.add(anthropic.NewUserMessage(results...)); err != nil {
			return false, err
		}
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case l.schema.isAnswered():
		return true, nil
	case calls > 0:
		return false, nil
	}
	switch answer.StopReason {
	case anthropic.StopReasonRefusal:
		return false, newEnd(wire.CauseRefused, "the model declined to answer")
	case "model_context_window_exceeded":
		return false, newEnd(wire.CauseContextOverflow, "the conversation no longer fits the model")
	case anthropic.StopReasonMaxTokens:
		return false, l.addReminder("Your answer was cut off because it was too long. Continue where it ends, in smaller pieces.")
	case anthropic.StopReasonPauseTurn:
		return false, l.addReminder("Go on.")
	}
	if l.schema == nil || l.schema.extract(l.text) {
		return true, nil
	}
	if l.repaired {
		return false, newEnd(wire.CauseNoAnswer, "the model gave no answer in the requested form"+l.schema.problem())
	}
	l.repaired = true
	return false, l.addReminder("Give your answer by calling the tool " + wire.ToolAnswer + ", and nothing else." + l.schema.problem())
}

// addReminder adds a message of the loop to the conversation.
func (l *loop) addReminder(text string) error {
	l.out.print(wire.Line{Type: wire.TypeNotice, Text: text})
	// The tag tells the model and readers that no person wrote this.
	return l.sess.add(anthropic.NewUserMessage(anthropic.NewTextBlock("<system-reminder>" + text + "</system-reminder>")))
}

// runCalls runs every call of an answer, one after the other. Each gets a result, even if the run is being stopped,
// because a conversation with an unanswered call cannot be resumed.
func (l *loop) runCalls(ctx context.Context, answer *anthropic.Message) (results []anthropic.ContentBlockParamUnion, calls int) {
	shown := 0 // bytes of the pictures in the results
	for _, b := range answer.Content {
		if b.Type != "tool_use" {
			continue
		}
		calls++
		var r toolResult
		switch {
		case ctx.Err() != nil:
			r = toolResult{text: interrupted, failed: true}
		case answer.StopReason == anthropic.StopReasonMaxTokens:
			r = toolResult{text: "The call was cut off because the answer was too long. Do it in smaller pieces.", failed: true}
		default:
			r = l.tools.run(ctx, b.Name, b.Input)
		}
		r = r.withinLimit(l.sess.pictureBytes()+shown, l.opt.PictureBytes)
		shown += r.picture.encodedBytes()
		l.out.print(wire.Line{Type: wire.TypeToolResult, ID: b.ID, Text: r.text, IsError: r.failed})
		results = append(results, r.block(b.ID))
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
	if l.schema.isAnswered() && r.Cause == wire.CauseOK {
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
