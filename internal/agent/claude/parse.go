package claude

import (
	"encoding/json"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/cli"
	"github.com/errand-bot/errand/internal/agent/partialjson"
	"github.com/errand-bot/errand/internal/runlog"
)

// parser reads stream-json. It keeps only the state that Exit needs.
type parser struct {
	session string // of the newest init
	last    *result
	resetAt time.Time
	lastErr string       // kind of the newest API failure
	own     runlog.Usage // usage of this process, if the results report it separately
	ownCost float64
	counted bool   // they do
	cut     string // set if an overlong line may have been the last result: the reason, for people
	after   bool   // a tool was called after the last result
}

var _ agent.Parser = (*parser)(nil)

// message is the union of the fields that errand reads.
type message struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Model     string          `json:"model"`
	Error     json.RawMessage `json:"error"`
	Message   struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	IsSynthetic bool `json:"isSynthetic"`

	DelayMS   float64     `json:"retry_delay_ms"`
	Original  string      `json:"original_model"`
	Fallback  string      `json:"fallback_model"`
	HookEvent string      `json:"hook_event"`
	Outcome   string      `json:"outcome"`
	MCP       []mcpServer `json:"mcp_servers"`
	RateLimit rateLimit   `json:"rate_limit_info"`
}

type mcpServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type rateLimit struct {
	Status   string  `json:"status"`
	ResetsAt float64 `json:"resetsAt"`
	Type     string  `json:"rateLimitType"`
}

func (p *parser) Line(line []byte) []runlog.Event {
	var l message
	// A field of an unexpected type leaves the others readable, so only the type decides.
	if err := json.Unmarshal(line, &l); err != nil && l.Type == "" {
		return nil
	}
	switch l.Type {
	case "system":
		return p.system(l)
	case "assistant":
		return p.assistant(l)
	case "user":
		return userEvents(l)
	case "rate_limit_event":
		return p.rateLimit(l.RateLimit)
	case "result":
		return p.result(line)
	}
	return nil
}

// Cut reads the beginning of a line. Everything except the last result is shown as far as it goes; the result counts
// only if nothing but the list of denials is missing.
func (p *parser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := partialjson.Complete(line)
	var l struct {
		Type   string          `json:"type"`
		Result json.RawMessage `json:"result"`
	}
	_ = json.Unmarshal(whole, &l) // an unreadable line has no type
	switch {
	case l.Type == "result" && l.Result != nil && len(at) > 0 && at[0] == "permission_denials":
		return p.Line(whole)
	case l.Type == "result":
		p.last, p.cut = nil, cli.ReasonTooLong
	case l.Type == "", partialjson.At(at, "type"): // its type is unknown
		p.last, p.cut = nil, cli.ReasonMissingOutput
	default:
		return p.Line(whole)
	}
	return nil
}

// system reads the program's messages about itself.
func (p *parser) system(l message) []runlog.Event {
	switch l.Subtype {
	case "init":
		p.session = l.SessionID
		events := []runlog.Event{{Kind: runlog.KindStarted, Session: cli.EventText(l.SessionID), Model: cli.EventText(l.Model)}}
		for _, s := range l.MCP {
			if s.Status == "failed" {
				events = append(events, cli.Notice("MCP server "+s.Name+" could not be reached"))
			}
		}
		return events
	case "api_retry":
		kind := cli.JSONString(l.Error)
		return []runlog.Event{{
			Kind: runlog.KindRetry, Text: cli.EventText(kind), IsError: true,
			Delay: time.Duration(cli.Clamp(l.DelayMS, 0, 3.6e6) * float64(time.Millisecond)),
		}}
	case "model_fallback":
		return []runlog.Event{cli.Notice("model " + l.Original + " replaced by " + l.Fallback)}
	case "compact_boundary":
		return []runlog.Event{cli.Notice("conversation compacted")}
	case "hook_response":
		if l.Outcome != "" && l.Outcome != "success" {
			return []runlog.Event{cli.Notice("hook " + l.HookEvent + ": " + l.Outcome)}
		}
	}
	return nil
}

// assistant reads the model's text and tool calls. API failures have the same form.
func (p *parser) assistant(l message) []runlog.Event {
	failure := cli.JSONString(l.Error)
	if failure != "" {
		p.lastErr = failure
	}
	var events []runlog.Event
	for _, b := range cli.ContentBlocks(l.Message.Content) {
		switch b.Type {
		case "text":
			ev := runlog.Event{Kind: runlog.KindText, Text: cli.OwnText(b.Text)}
			if failure != "" {
				ev.Kind, ev.IsError = runlog.KindNotice, true
			}
			events = append(events, ev)
		case "thinking":
			events = append(events, runlog.Event{Kind: runlog.KindThinking, Text: cli.EventText(b.Thinking)})
		case "tool_use":
			p.after = p.last != nil
			events = append(events, runlog.Event{
				Kind: runlog.KindToolUse, ToolID: cli.EventText(b.ID), ToolName: cli.EventText(b.Name),
				Input: cli.EventText(string(b.Input)),
			})
		}
	}
	return events
}

// userEvents reads the results of tools, and messages that the program generated for the model.
func userEvents(l message) []runlog.Event {
	var events []runlog.Event
	for _, b := range cli.ContentBlocks(l.Message.Content) {
		switch {
		case b.Type == "tool_result":
			events = append(events, runlog.Event{
				Kind: runlog.KindToolResult, ToolID: cli.EventText(b.ToolUseID), IsError: b.IsError,
				Text: cli.EventText(cli.ContentText(b.Content)),
			})
		case b.Type == "text" && l.IsSynthetic:
			events = append(events, cli.Notice(b.Text))
		}
	}
	return events
}

// rateLimit records the end of an exhausted limit.
func (p *parser) rateLimit(r rateLimit) []runlog.Event {
	if r.Status == "" || r.Status == "allowed" {
		return nil
	}
	text := "limit " + r.Type + ": " + r.Status
	const farthest = 4102444800 // the year 2100
	if r.ResetsAt > 0 && r.ResetsAt < farthest {
		reset := time.Unix(int64(r.ResetsAt), 0).UTC()
		text += ", resets at " + reset.Format(time.RFC3339)
		if r.Status == "rejected" {
			p.resetAt = reset
		}
	}
	return []runlog.Event{cli.Notice(text)}
}

// result stores the newest result. Runs with background tasks have several.
func (p *parser) result(line []byte) []runlog.Event {
	r := &result{}
	if err := json.Unmarshal(line, r); err != nil && r.Subtype == "" {
		return nil
	}
	p.last, p.cut, p.after = r, "", false
	usage := totalUsage(r.Models)
	if r.Since != nil {
		usage, p.counted = totalUsage(r.Since), true
		p.own, p.ownCost = p.own.Add(usage), p.ownCost+totalCost(r.Since)
	}
	return []runlog.Event{
		{Kind: runlog.KindUsage, Usage: &usage},
		{Kind: runlog.KindResult, Text: cli.OwnText(r.text()), Session: cli.EventText(r.SessionID), IsError: r.IsError},
	}
}
