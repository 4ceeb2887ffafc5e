package agent

import (
	"encoding/json"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// Limits on the texts in an event, in bytes.
const (
	maxEventText = 16 << 10
	maxOwnText   = 256 << 10
)

// claudeParser reads stream-json. It keeps only the state that Exit needs.
type claudeParser struct {
	session string // of the newest init
	last    *claudeResult
	resetAt time.Time
	lastErr string       // kind of the newest API failure
	own     runlog.Usage // usage of this process, if the results report it separately
	ownCost float64
	counted bool   // they do
	cut     string // set if an overlong line may have been the last result: the reason, for people
	after   bool   // a tool was called after the last result
}

var _ Parser = (*claudeParser)(nil)

// claudeLine is the union of the fields that errand reads.
type claudeLine struct {
	Type      string          `json:"type"`
	Subtype   string          `json:"subtype"`
	SessionID string          `json:"session_id"`
	Model     string          `json:"model"`
	Error     json.RawMessage `json:"error"`
	Message   struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	IsSynthetic bool `json:"isSynthetic"`

	DelayMS     float64         `json:"retry_delay_ms"`
	ErrorStatus int             `json:"error_status"`
	Original    string          `json:"original_model"`
	Fallback    string          `json:"fallback_model"`
	HookEvent   string          `json:"hook_event"`
	Outcome     string          `json:"outcome"`
	MCP         []claudeMCP     `json:"mcp_servers"`
	RateLimit   claudeRateLimit `json:"rate_limit_info"`
}

type claudeMCP struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

type claudeRateLimit struct {
	Status   string  `json:"status"`
	ResetsAt float64 `json:"resetsAt"`
	Type     string  `json:"rateLimitType"`
}

// claudeBlock is one content block.
type claudeBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (p *claudeParser) Line(line []byte) []runlog.Event {
	var l claudeLine
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
func (p *claudeParser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := closeJSON(line)
	var l struct {
		Type   string          `json:"type"`
		Result json.RawMessage `json:"result"`
	}
	_ = json.Unmarshal(whole, &l) // an unreadable line has no type
	switch {
	case l.Type == "result" && l.Result != nil && len(at) > 0 && at[0] == "permission_denials":
		return p.Line(whole)
	case l.Type == "result":
		p.last, p.cut = nil, cutTooLong
	case l.Type == "", cutIn(at, "type"): // its type is unknown
		p.last, p.cut = nil, cutNoResult
	default:
		return p.Line(whole)
	}
	return nil
}

// system reads the program's messages about itself.
func (p *claudeParser) system(l claudeLine) []runlog.Event {
	switch l.Subtype {
	case "init":
		p.session = l.SessionID
		events := []runlog.Event{{Kind: runlog.KindStarted, Session: cutText(l.SessionID, maxEventText), Model: cutText(l.Model, maxEventText)}}
		for _, s := range l.MCP {
			if s.Status == "failed" {
				events = append(events, notice("MCP server "+s.Name+" could not be reached"))
			}
		}
		return events
	case "api_retry":
		kind := jsonText(l.Error)
		return []runlog.Event{{
			Kind: runlog.KindRetry, Text: cutText(kind, maxEventText), IsError: true,
			Delay: time.Duration(clamp(l.DelayMS, 0, 3.6e6) * float64(time.Millisecond)),
		}}
	case "model_fallback":
		return []runlog.Event{notice("model " + l.Original + " replaced by " + l.Fallback)}
	case "compact_boundary":
		return []runlog.Event{notice("conversation compacted")}
	case "hook_response":
		if l.Outcome != "" && l.Outcome != "success" {
			return []runlog.Event{notice("hook " + l.HookEvent + ": " + l.Outcome)}
		}
	}
	return nil
}

// assistant reads the model's text and tool calls. API failures have the same form.
func (p *claudeParser) assistant(l claudeLine) []runlog.Event {
	failure := jsonText(l.Error)
	if failure != "" {
		p.lastErr = failure
	}
	var events []runlog.Event
	for _, b := range blocks(l.Message.Content) {
		switch b.Type {
		case "text":
			ev := runlog.Event{Kind: runlog.KindText, Text: cutText(b.Text, maxOwnText)}
			if failure != "" {
				ev.Kind, ev.IsError = runlog.KindNotice, true
			}
			events = append(events, ev)
		case "thinking":
			events = append(events, runlog.Event{Kind: runlog.KindThinking, Text: cutText(b.Thinking, maxEventText)})
		case "tool_use":
			p.after = p.last != nil
			events = append(events, runlog.Event{
				Kind: runlog.KindToolUse, ToolID: cutText(b.ID, maxEventText), ToolName: cutText(b.Name, maxEventText),
				Input: cutText(string(b.Input), maxEventText),
			})
		}
	}
	return events
}

// userEvents reads the results of tools, and messages that the program generated for the model.
func userEvents(l claudeLine) []runlog.Event {
	var events []runlog.Event
	for _, b := range blocks(l.Message.Content) {
		switch {
		case b.Type == "tool_result":
			events = append(events, runlog.Event{
				Kind: runlog.KindToolResult, ToolID: cutText(b.ToolUseID, maxEventText), IsError: b.IsError,
				Text: cutText(contentText(b.Content), maxEventText),
			})
		case b.Type == "text" && l.IsSynthetic:
			events = append(events, notice(b.Text))
		}
	}
	return events
}

// rateLimit records the end of an exhausted limit.
func (p *claudeParser) rateLimit(r claudeRateLimit) []runlog.Event {
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
	return []runlog.Event{notice(text)}
}

// result stores the newest result. Runs with background tasks have several.
func (p *claudeParser) result(line []byte) []runlog.Event {
	r := &claudeResult{}
	if err := json.Unmarshal(line, r); err != nil && r.Subtype == "" {
		return nil
	}
	p.last, p.cut, p.after = r, "", false
	usage := useOf(r.Models)
	if r.Since != nil {
		usage, p.counted = useOf(r.Since), true
		p.own, p.ownCost = p.own.Add(usage), p.ownCost+costOf(r.Since)
	}
	return []runlog.Event{
		{Kind: runlog.KindUsage, Usage: &usage},
		{Kind: runlog.KindResult, Text: cutText(r.text(), maxOwnText), Session: cutText(r.SessionID, maxEventText), IsError: r.IsError},
	}
}

func notice(text string) runlog.Event {
	return runlog.Event{Kind: runlog.KindNotice, Text: cutText(text, maxEventText)}
}
