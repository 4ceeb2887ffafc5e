package codex

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
	"github.com/errand-bot/errand/internal/agent/partialjson"
	"github.com/errand-bot/errand/internal/runlog"
)

// parser reads the events of `codex exec --json`.
type parser struct {
	session   string
	turns     int  // answers of the model, as far as they are distinguishable
	answer    bool // the newest item came from the model
	open      map[string]bool
	text      string // the agent's text since its newest tool call: at the end, its answer
	cut       string // set if that text was in an overlong line: the reason, for people
	complaint string // the newest error that is not a retry
	failure   *string
	done      bool
	usage     runlog.Usage // of the whole session
	denials   []string     // calls that the rules refused
}

var _ agent.Parser = (*parser)(nil)

// event is the union of the fields that errand reads.
type event struct {
	Type     string      `json:"type"`
	ThreadID string      `json:"thread_id"`
	Message  string      `json:"message"`
	Item     item        `json:"item"`
	Usage    threadUsage `json:"usage"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
}

// item is one step of a turn.
type item struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Text    string `json:"text"`
	Message string `json:"message"`
	Status  string `json:"status"`

	Command  string          `json:"command"`
	Output   string          `json:"aggregated_output"`
	ExitCode *int            `json:"exit_code"`
	Changes  json.RawMessage `json:"changes"`

	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    struct {
		Content json.RawMessage `json:"content"`
	} `json:"result"`
	Error json.RawMessage `json:"error"`
	Query string          `json:"query"`
}

// threadUsage counts the tokens of the thread, including earlier processes. Input includes both kinds of cache.
type threadUsage struct {
	Input      float64 `json:"input_tokens"`
	Cached     float64 `json:"cached_input_tokens"`
	CacheWrite float64 `json:"cache_write_input_tokens"`
	Output     float64 `json:"output_tokens"`
}

func (u threadUsage) usage() runlog.Usage {
	out := runlog.Usage{CacheRead: cli.Tokens(u.Cached), CacheWrite: cli.Tokens(u.CacheWrite), Output: cli.Tokens(u.Output)}
	out.Input = max(cli.Tokens(u.Input)-out.CacheRead-out.CacheWrite, 0)
	return out
}

func (p *parser) Line(line []byte) []runlog.Event {
	var l event
	// A field of an unexpected type leaves the others readable, so only the type decides.
	if err := json.Unmarshal(line, &l); err != nil && l.Type == "" {
		return nil
	}
	switch l.Type {
	case "thread.started":
		p.session = l.ThreadID
		return []runlog.Event{{Kind: runlog.KindStarted, Session: cli.EventText(l.ThreadID)}}
	case "item.started":
		p.dropEarlierText(l.Item.Type)
		return p.started(l.Item)
	case "item.updated":
		p.dropEarlierText(l.Item.Type)
		return nil
	case "item.completed":
		return p.completed(l.Item)
	case "error":
		return p.problem(l.Message)
	case "turn.completed":
		return p.finished(l.Usage.usage())
	case "turn.failed":
		said := cmp.Or(l.Error.Message, p.complaint, "the turn failed")
		p.failure = &said
		return []runlog.Event{{Kind: runlog.KindResult, Text: cli.OwnText(said), Session: cli.EventText(p.session), IsError: true}}
	}
	return nil
}

// Cut reads the beginning of a line. Commands and their output are shown as far as they go; an incomplete message is
// not an answer.
func (p *parser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := partialjson.Complete(line)
	var l event
	_ = json.Unmarshal(whole, &l) // an unreadable line has no type
	if partialjson.At(at, "type") || partialjson.At(at, "item", "type") || l.Type == "" || l.Type == "item.completed" && l.Item.Type == "" {
		p.text, p.cut = "", cli.ReasonMissingOutput // its type is unknown
		return nil
	}
	events := p.Line(whole)
	if l.Item.Type == "agent_message" && (l.Item.Text == "" || partialjson.At(at, "item", "text")) {
		p.text, p.cut = "", cli.ReasonTooLong
	}
	return events
}

// spoke counts an item of the model. An item after the end of a tool call belongs to the next answer.
func (p *parser) spoke() {
	if !p.answer {
		p.turns++
	}
	p.answer = true
}

// dropEarlierText drops the text before a tool call, because it is not the answer.
func (p *parser) dropEarlierText(kind string) {
	switch kind {
	case "agent_message", "reasoning", "error":
	default:
		p.text, p.cut = "", ""
	}
}

// started reads the start of a tool call.
func (p *parser) started(it item) []runlog.Event {
	name, input := it.call()
	if name == "" {
		return nil
	}
	p.spoke()
	const most = 1000 // protects against a run that starts tool calls without ending any
	if p.open == nil {
		p.open = map[string]bool{}
	}
	if len(p.open) < most {
		p.open[it.ID] = true
	}
	return []runlog.Event{{
		Kind: runlog.KindToolUse, ToolID: cli.EventText(it.ID), ToolName: cli.EventText(name), Input: cli.EventText(input),
	}}
}

// call returns the tool of an item and its input as JSON, or "" if the item is not a tool call.
func (it item) call() (name, input string) {
	object := func(field string, value any) string {
		b, err := json.Marshal(map[string]any{field: value})
		if err != nil {
			return "{}"
		}
		return string(b)
	}
	switch it.Type {
	case "command_execution":
		return "shell", object("command", unwrapShell(it.Command))
	case "file_change":
		return "apply_patch", object("changes", it.Changes)
	case "mcp_tool_call":
		return "mcp__" + it.Server + "__" + it.Tool, string(it.Arguments)
	case "web_search":
		return "web_search", object("query", it.Query)
	}
	return "", ""
}

// completed reads a completed item.
func (p *parser) completed(it item) []runlog.Event {
	switch it.Type {
	case "agent_message":
		p.spoke()
		p.text, p.cut = it.Text, ""
		return []runlog.Event{{Kind: runlog.KindText, Text: cli.OwnText(it.Text)}}
	case "reasoning":
		p.spoke()
		return []runlog.Event{{Kind: runlog.KindThinking, Text: cli.EventText(it.Text)}}
	case "error":
		return []runlog.Event{cli.Notice(it.Message)}
	}
	var events []runlog.Event
	if !p.open[it.ID] {
		events = p.started(it)
		if len(events) == 0 {
			return nil
		}
		p.dropEarlierText(it.Type)
	}
	delete(p.open, it.ID)
	p.answer = false
	text, failed := it.outcome()
	return append(events, runlog.Event{
		Kind:    runlog.KindToolResult,
		ToolID:  cli.EventText(it.ID),
		IsError: failed,
		Text:    cli.EventText(text),
	})
}

// outcome returns the result of a tool call.
func (it item) outcome() (text string, failed bool) {
	failed = it.Status == "failed" || it.Status == "declined"
	switch it.Type {
	case "command_execution":
		text = strings.TrimSuffix(it.Output, "\n")
		if it.ExitCode != nil && *it.ExitCode != 0 {
			return fmt.Sprintf("Exit code %d\n%s", *it.ExitCode, text), true
		}
	case "mcp_tool_call":
		var e struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(it.Error, &e) == nil && e.Message != "" {
			return e.Message, true
		}
		text = cli.ContentText(it.Result.Content)
	default:
		text = it.Status
	}
	return text, failed
}

// problem reads an error that may be temporary.
func (p *parser) problem(message string) []runlog.Event {
	if strings.HasPrefix(message, "Reconnecting...") {
		return []runlog.Event{{Kind: runlog.KindRetry, Text: cli.EventText(message), IsError: true}}
	}
	p.complaint = cli.EventText(message)
	ev := cli.Notice(message)
	ev.IsError = true
	return []runlog.Event{ev}
}

// finished reads the end of a turn. It reports the usage as text, because the count covers the whole session.
func (p *parser) finished(u runlog.Usage) []runlog.Event {
	p.done, p.failure, p.usage = true, nil, u
	return []runlog.Event{
		cli.Notice(fmt.Sprintf("the session has used %d tokens, %d from the cache, and made %d", u.Input+u.CacheRead+u.CacheWrite, u.CacheRead, u.Output)),
		{Kind: runlog.KindResult, Text: cli.OwnText(p.text), Session: cli.EventText(p.session)},
	}
}
