package agent

import (
	"encoding/json"
	"strings"

	"github.com/errand-bot/errand/internal/runlog"
)

// geminiParser reads stream-json. What the model says comes in pieces, which are put together again:
// they are told when something else follows.
type geminiParser struct {
	session string
	said    strings.Builder // of the answer that is being told
	answer  string          // the words of the newest turn, once they were told whole
	cut     string          // set if some of those are missing: why, for people
	problem string          // the newest error that the program told of
	turns   int
	inTurn  bool // the model speaks: what comes belongs to the turn that was counted
	looped  bool
	last    *geminiResult
	denials []string // calls that the rules refused
}

var _ Parser = (*geminiParser)(nil)

// geminiLine is the union of the lines that mean something to us.
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

// geminiStats are what the process has used.
type geminiStats struct {
	Total  float64 `json:"total_tokens"`
	Input  float64 `json:"input_tokens"`  // the cached ones included
	Output float64 `json:"output_tokens"` // without thoughts
	Cached float64 `json:"cached"`
}

// usage is what the process has used. Thoughts are only in the total.
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
		p.answer, p.cut = "", "" // what was said before is no answer
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

// Cut reads what is there of a line. Calls and what they returned are only shown; an answer needs all of its pieces.
func (p *geminiParser) Cut(line []byte, _ int) []runlog.Event {
	whole, at := closeJSON(line)
	var l geminiLine
	_ = json.Unmarshal(whole, &l) // what cannot be read has no type
	if l.Type == "" || cutIn(at, "type") {
		p.cut = cutNoResult // its type is not known
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

// geminiDenied is the kind of error of a call that was not made because a policy or a hook refused it, geminiOutside what
// the program says of one whose file is not in the checkout.
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

// turn counts an answer of the model where it begins.
func (p *geminiParser) turn() {
	if !p.inTurn {
		p.inTurn = true
		p.turns++
		p.answer, p.cut = "", ""
	}
}

// tell gives what was said, once nothing more of it can come.
func (p *geminiParser) tell() []runlog.Event {
	if p.said.Len() == 0 {
		return nil
	}
	p.answer = strings.ToValidUTF8(p.said.String(), "\uFFFD")
	p.said.Reset()
	return []runlog.Event{{Kind: runlog.KindText, Text: cutText(p.answer, maxOwnText)}}
}

// result keeps the newest result.
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
