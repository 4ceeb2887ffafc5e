package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
	"github.com/errand-bot/errand/internal/agent/partialjson"
	"github.com/errand-bot/errand/internal/runlog"
)

// parser reads stream-json. The model's text arrives in chunks, which are joined and reported when something else
// follows.
type parser struct {
	session string
	said    strings.Builder // chunks of the current answer
	answer  string          // the text of the newest turn, once it is complete
	cut     string          // set if some of it is missing: the reason, for people
	problem string          // the newest error that the program reported
	turns   int
	inTurn  bool // the model is speaking: its chunks belong to the counted turn
	looped  bool
	last    *result
	denials []string // calls that the rules refused
}

var _ agent.Parser = (*parser)(nil)

// message is the union of the fields that errand reads.
type message struct {
	Type      string          `json:"type"`
	SessionID string          `json:"session_id"`
	Model     string          `json:"model"`
	Role      string          `json:"role"`
	Content   string          `json:"content"`
	ToolName  string          `json:"tool_name"`
	ToolID    string          `json:"tool_id"`
	Input     json.RawMessage `json:"parameters"`
	Status    string          `json:"status"`
	Output    string          `json:"output"`
	Severity  string          `json:"severity"`
	Message   string          `json:"message"`
	Error     failure         `json:"error"`
}

type failure struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// result is the last line of a run.
type result struct {
	Status string  `json:"status"`
	Error  failure `json:"error"`
	Stats  stats   `json:"stats"`
}

// stats is the usage of the process.
type stats struct {
	Total  float64 `json:"total_tokens"`
	Input  float64 `json:"input_tokens"`  // including the cached ones
	Output float64 `json:"output_tokens"` // without thoughts
	Cached float64 `json:"cached"`
}

// usage returns the usage of the process. Thoughts are only included in the total.
func (r *result) usage() runlog.Usage {
	input, cached := cli.Tokens(r.Stats.Input), cli.Tokens(r.Stats.Cached)
	return runlog.Usage{
		Input: max(input-cached, 0), CacheRead: cached, Output: max(cli.Tokens(r.Stats.Output), cli.Tokens(r.Stats.Total)-input),
	}
}

func (p *parser) Line(line []byte) []runlog.Event {
	var l message
	// A field of an unexpected type leaves the others readable, so only the type decides.
	if err := json.Unmarshal(line, &l); err != nil && l.Type == "" {
		return nil
	}
	switch l.Type {
	case "init":
		p.session = l.SessionID
		return []runlog.Event{{Kind: runlog.KindStarted, Session: cli.EventText(l.SessionID), Model: cli.EventText(l.Model)}}
	case "message":
		if l.Role != "assistant" || l.Content == "" {
			return nil // the prompt again
		}
		p.turn()
		if p.said.Len()+len(l.Content) > cli.MaxAnswer {
			p.cut = cli.ReasonTooLong
			return nil
		}
		p.said.WriteString(l.Content)
		return nil
	case "tool_use":
		p.turn()
		events := append(p.tell(), runlog.Event{
			Kind:     runlog.KindToolUse,
			ToolID:   cli.EventText(l.ToolID),
			ToolName: cli.EventText(l.ToolName),
			Input:    cli.EventText(string(l.Input)),
		})
		p.answer, p.cut = "", "" // earlier text is not the answer
		return events
	case "tool_result":
		p.inTurn = false
		p.denied(&l)
		return append(p.tell(), runlog.Event{
			Kind: runlog.KindToolResult, ToolID: cli.EventText(l.ToolID), IsError: l.Status == "error",
			Text: cli.EventText(cmp.Or(l.Output, l.Error.Message)),
		})
	case "error":
		p.looped = p.looped || strings.HasPrefix(l.Message, "Loop detected")
		ev := cli.Notice(l.Message)
		ev.IsError = l.Severity == "error"
		if ev.IsError {
			p.problem = cli.EventText(l.Message)
		}
		return append(p.tell(), ev)
	case "result":
		return p.result(line)
	}
	return nil
}

// Cut reads the beginning of a line. Tool calls and their results are shown as far as they go; an answer needs all of
// its chunks.
func (p *parser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := partialjson.Complete(line)
	var l message
	_ = json.Unmarshal(whole, &l) // an unreadable line has no type
	if l.Type == "" || partialjson.At(at, "type") {
		p.cut = cli.ReasonMissingOutput // its type is unknown
		return nil
	}
	events := p.Line(whole)
	switch {
	case l.Type == "message" && p.inTurn:
		p.cut = cli.ReasonTooLong
	case l.Type == "result" && p.last != nil:
		p.last.Stats = stats{} // some may be missing
	}
	return events
}

// errorDenied is the type of error of a call that a policy or a hook refused; geminiOutside begins the message for a
// file outside of the checkout.
const (
	errorDenied     = "policy_violation"
	outsideCheckout = "Path not in workspace: "
)

// denied counts the calls that the rules refused.
func (p *parser) denied(l *message) {
	refused := l.Error.Type == errorDenied || strings.HasPrefix(l.Error.Message, outsideCheckout)
	if l.Status == "error" && refused && len(p.denials) < cli.MaxDenials {
		name, _, _ := strings.Cut(l.ToolID, "__") // the id begins with the tool's name
		p.denials = append(p.denials, cli.Truncate(name, 100))
	}
}

// turn counts an answer of the model at its beginning.
func (p *parser) turn() {
	if !p.inTurn {
		p.inTurn = true
		p.turns++
		p.answer, p.cut = "", ""
	}
}

// tell returns the text of the current answer, which is complete.
func (p *parser) tell() []runlog.Event {
	if p.said.Len() == 0 {
		return nil
	}
	p.answer = strings.ToValidUTF8(p.said.String(), "\uFFFD")
	p.said.Reset()
	return []runlog.Event{{Kind: runlog.KindText, Text: cli.OwnText(p.answer)}}
}

// result stores the newest result.
func (p *parser) result(line []byte) []runlog.Event {
	r := &result{}
	if err := json.Unmarshal(line, r); err != nil && r.Status == "" {
		return nil
	}
	p.last = r
	usage := r.usage()
	return append(p.tell(),
		runlog.Event{Kind: runlog.KindUsage, Usage: &usage},
		runlog.Event{
			Kind: runlog.KindResult, Text: cli.OwnText(cmp.Or(r.Error.Message, p.answer)), Session: cli.EventText(p.session),
			IsError: r.Status != "success",
		})
}
