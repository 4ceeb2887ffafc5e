package simagent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
)

// errNoSession is wrapped when --resume names an unknown session.
var errNoSession = errors.New("No conversation found with session ID") //nolint:staticcheck // as claude says it

// message is one message of a conversation in the API's format.
type message struct {
	ID      string  `json:"id,omitempty"`
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is one content block, of any kind and in both directions.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// record is one line of a session's file.
type record struct {
	Type      string  `json:"type"`
	UUID      string  `json:"uuid"`
	Parent    string  `json:"parentUuid,omitempty"`
	SessionID string  `json:"sessionId"`
	CWD       string  `json:"cwd"`
	Version   string  `json:"version"`
	Time      string  `json:"timestamp"`
	Message   message `json:"message"`
}

// session is a conversation and its file. An unwritable file is not an error: the run works, but cannot be resumed.
type session struct {
	id       string
	path     string
	cwd      string
	parent   string
	messages []message
}

func newID() string { return uuid.NewString() }

// slug returns the name of the directory for a working directory's sessions.
func slug(cwd string) string {
	return regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(cwd, "-")
}

// openSession finds the session to resume, or starts one.
func openSession(configDir, cwd string, opt options) (*session, error) {
	s := &session{id: opt.sessionID, cwd: cwd}
	dir := filepath.Join(configDir, "projects", slug(cwd))
	switch {
	case opt.resume != "":
		if err := s.resume(dir, opt); err != nil {
			return nil, err
		}
	case s.id == "":
		s.id = newID()
	case uuid.Validate(s.id) != nil:
		return nil, errors.New("Invalid session ID. Must be a valid UUID.") //nolint:staticcheck // as claude says it
	default:
		if _, err := os.Stat(filepath.Join(dir, s.id+".jsonl")); err == nil {
			return nil, fmt.Errorf("Session ID %s is already in use.", s.id) //nolint:staticcheck // as claude says it
		}
	}
	if s.path == "" {
		s.path = filepath.Join(dir, s.id+".jsonl")
	}
	if opt.noSave {
		s.path = ""
	}
	return s, nil
}

// resume loads the session given by ID or by the absolute path of its file.
func (s *session) resume(dir string, opt options) error {
	id, path := opt.resume, filepath.Join(dir, opt.resume+".jsonl")
	if filepath.IsAbs(opt.resume) {
		path = opt.resume
		id = strings.TrimSuffix(filepath.Base(path), ".jsonl")
	}
	data, err := os.ReadFile(path)
	if err != nil || uuid.Validate(id) != nil {
		return fmt.Errorf("%w: %s", errNoSession, opt.resume)
	}
	s.messages, s.parent = replay(data)
	if !opt.fork {
		s.id, s.path = id, path
		return nil
	}
	if s.id == "" {
		s.id = newID()
	}
	s.path = filepath.Join(dir, s.id+".jsonl")
	old := s.messages
	s.messages = nil
	for _, m := range old {
		s.add(m)
	}
	return nil
}

// replay reads the complete lines of a session's file, and repairs conversations cut off by a kill.
func replay(data []byte) (messages []message, last string) {
	for line := range bytes.Lines(data) {
		var r record
		if json.Unmarshal(line, &r) != nil || (r.Type != "user" && r.Type != "assistant") {
			continue
		}
		last = r.UUID
		if n := len(messages); n > 0 && messages[n-1].Role == r.Message.Role {
			messages[n-1].Content = append(messages[n-1].Content, r.Message.Content...)
			continue
		}
		messages = append(messages, r.Message)
	}
	return mend(messages), last
}

// mend gives every tool call a result and drops results without a call.
func mend(messages []message) []message {
	var out []message
	for i, m := range messages {
		if m.Role == "user" {
			m.Content = keepAnswers(m.Content, out)
			if len(m.Content) == 0 {
				continue
			}
		}
		if m.Role == "assistant" && len(out) == 0 {
			continue
		}
		out = append(out, m)
		if m.Role != "assistant" {
			continue
		}
		var next []block
		if i+1 < len(messages) {
			next = messages[i+1].Content
		}
		if open := unanswered(m.Content, next); len(open) > 0 {
			out = append(out, message{Role: "user", Content: open})
		}
	}
	return out
}

// keepAnswers removes tool results without a matching call in the messages before.
func keepAnswers(content []block, before []message) []block {
	asked := map[string]bool{}
	for _, m := range before {
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				asked[b.ID] = true
			}
		}
	}
	var kept []block
	for _, b := range content {
		if b.Type != "tool_result" || asked[b.ToolUseID] {
			kept = append(kept, b)
		}
	}
	return kept
}

// unanswered returns error results for calls without a result.
func unanswered(content, next []block) []block {
	answered := map[string]bool{}
	for _, b := range next {
		answered[b.ToolUseID] = true
	}
	var open []block
	for _, b := range content {
		if b.Type == "tool_use" && !answered[b.ID] {
			open = append(open, toolResult(b.ID, "[Request interrupted by user for tool use]", true))
		}
	}
	return open
}

// add appends a message to the conversation and to the file. The API treats consecutive messages of the same role as
// one.
func (s *session) add(m message) {
	if n := len(s.messages); n > 0 && s.messages[n-1].Role == m.Role {
		s.messages[n-1].Content = append(s.messages[n-1].Content, m.Content...)
	} else {
		s.messages = append(s.messages, m)
	}
	if s.path == "" {
		return
	}
	r := record{
		Type: m.Role, UUID: newID(), Parent: s.parent, SessionID: s.id, CWD: s.cwd,
		Version: Version, Time: time.Now().UTC().Format(time.RFC3339Nano), Message: m,
	}
	s.parent = r.UUID
	line, err := json.Marshal(r)
	if err != nil {
		return
	}
	_ = appendLine(s.path, line)
}

// appendLine adds a line to a file; if the file ends in an incomplete line it first ends that line.
func appendLine(path string, line []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		end := make([]byte, 1)
		if _, err := f.ReadAt(end, info.Size()-1); err == nil && end[0] != '\n' {
			line = append([]byte("\n"), line...)
		}
	}
	_, err = f.Write(append(line, '\n'))
	return err
}
