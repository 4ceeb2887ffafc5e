package agent

import (
	"encoding/json"
	"strings"

	"github.com/errand-bot/errand/internal/runlog"
)

// geminiParser reads stream-json. The model's text arrives in chunks, which are joined and reported when something else
// follows.
type geminiParser struct {
	session string
	said    strings.Builder // chunks of the current answer
	answer  string          // the text of the newest turn, once it is complete
	cut     string          // set if some of it is missing: the reason, for people
	problem string          // the newest error that the program reported
	turns   int
	inTurn  bool // the model is speaking: its chunks belong to the counted turn
	looped  bool
	last    *geminiResult
	denials []string // calls that the rules refused
}

var _ Parser = (*geminiParser)(nil)

// geminiLine is the union of the fields that errand reads.
type geminiLine struct {
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
	Error     geminiError     `json:"error"`
}

type geminiError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// geminiResult is the last line of a run.
type geminiResult struct {
	Status string      `json:"status"`
	Error  geminiError `json:"error"`
	Stats  geminiStats `json:"stats"`
}

// geminiStats is the usage of the process.
type geminiStats struct {
	Total  float64 `json:"total_tokens"`
	Input  float64 `json:"input_tokens"`  // including the cached ones
	Output float64 `json:"output_tokens"` // without thoughts
	Cached float64 `json:"cached"`
}

// usage returns the usage of the process. Thoughts are only included in the total.
func (r *geminiResult) usage() runlog.Usage {
	input, cached := tokens(r.Stats.Input), tokens(r.Stats.Cached)
	return runlog.Usage{
		Input: max(input-cached, 0), CacheRead: cached, Output: max(tokens(r.Stats.Output), tokens(r.Stats.Total)-input),
	}
}

func (p *geminiParser) Line(line []byte) []runlog.Event {
	var l geminiLine
	// A field of an unexpected type leaves the others readable, so only the type decides.
	if err := json.Unmarshal(line, &l); err != nil && l.Type == "" {
		return nil
	}
	switch l.Type {
	case "init":
		p.session = l.SessionID
		return []runlog.Event{{Kind: runlog.KindStarted, Session: cutText(l.SessionID, maxEventText), Model: cutText(l.Model, maxEventText)}}
	case "message":
		if l.Role != "assistant" || l.Content == "" {
			return nil // the prompt again
		}
		p.turn()
		if p.said.Len()+len(l.Content) > maxAnswer {
			p.cut = cutTooLong
			return nil
		}
		p.said.WriteString(l.Content)
		return nil
	case "tool_use":
		p.turn()
		events := append(p.tell(), runlog.Event{
			Kind: runlog.KindToolUse, ToolID: cutText(l.ToolID, maxEventText), ToolName: cutText(l.ToolName, maxEventText), Input: cutText(string(l.Input), maxEventText),
		})
		p.answer, p.cut = "", "" // earlier text is not the answer
		return events
	case "tool_result":
		p.inTurn = false
		p.denied(&l)
		return append(p.tell(), runlog.Event{
			Kind: runlog.KindToolResult, ToolID: cutText(l.ToolID, maxEventText), IsError: l.Status == "error",
			Text: cutText(firstOf(l.Output, l.Error.Message), maxEventText),
		})
	case "error":
		p.looped = p.looped || strings.HasPrefix(l.Message, "Loop detected")
		ev := notice(l.Message)
		ev.IsError = l.Severity == "error"
		if ev.IsError {
			p.problem = cutText(l.Message, maxEventText)
		}
		return append(p.tell(), ev)
	case "result":
		return p.result(line)
	}
	return nil
}

// Cut reads the beginning of a line. Tool calls and their results are shown as far as they go; an answer needs all of
// its chunks.
func (p *geminiParser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := closeJSON(line)
	var l geminiLine
	_ = json.Unmarshal(whole, &l) // an unreadable line has no type
	if l.Type == "" || cutIn(at, "type") {
		p.cut = cutNoResult // its type is unknown
		return nil
	}
	events := p.Line(whole)
	switch {
	case l.Type == "message" && p.inTurn:
		p.cut = cutTooLong
	case l.Type == "result" && p.last != nil:
		p.last.Stats = geminiStats{} // some may be missing
	}
	return events
}

// geminiDenied is the type of error of a call that a policy or a hook refused; geminiOutside begins the message for a
// file outside of the checkout.
const (
	geminiDenied  = "policy_violation"
	geminiOutside = "Path not in workspace: "
)

// denied counts the calls that the rules refused.
func (p *geminiParser) denied(l *geminiLine) {
	refused := l.Error.Type == geminiDenied || strings.HasPrefix(l.Error.Message, geminiOutside)
	if l.Status == "error" && refused && len(p.denials) < maxDenials {
		name, _, _ := strings.Cut(l.ToolID, "__") // the id begins with the tool's name
		p.denials = append(p.denials, cutText(name, 100))
	}
}

// turn counts an answer of the model at its beginning.
func (p *geminiParser) turn() {
	if !p.inTurn {
		p.inTurn = true
		p.turns++
		p.answer, p.cut = "", ""
	}
}

// tell returns the text of the current answer, which is complete.
func (p *geminiParser) tell() []runlog.Event {
	if p.said.Len() == 0 {
		return nil
	}
	p.answer = strings.ToValidUTF8(p.said.String(), "\uFFFD")
	p.said.Reset()
	return []runlog.Event{{Kind: runlog.KindText, Text: cutText(p.answer, maxOwnText)}}
}

// result stores the newest result.
func (p *geminiParser) result(line []byte) []runlog.Event {
	r := &geminiResult{}
	if err := json.Unmarshal(line, r); err != nil && r.Status == "" {
		return nil
	}
	p.last = r
	usage := r.usage()
	return append(p.tell(),
		runlog.Event{Kind: runlog.KindUsage, Usage: &usage},
		runlog.Event{
			Kind: runlog.KindResult, Text: cutText(firstOf(r.Error.Message, p.answer), maxOwnText), Session: cutText(p.session, maxEventText),
			IsError: r.Status != "success",
		})
}
