package agentloop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/durable"
)

// session is a conversation and its file, which contains one line per message in the API's format. Each line is written
// completely before the message is used. An incomplete line is removed when the session is opened again.
type session struct {
	id       string
	file     *os.File
	messages []anthropic.MessageParam
	starts   []int64 // where the line of each message begins in the file
	size     int64   // of the file
}

// interrupted is the result of a tool call that was not completed.
const interrupted = "[The run was interrupted before this was finished.]"

// openSession opens the session that the settings request. If a session to resume is missing or unreadable, the run
// ends with no_session; if the id of a new one is taken, with invalid.
func openSession(set wire.Settings, newID func() string) (*session, error) {
	for _, id := range []string{set.Resume, set.Session} {
		if id != "" && !wire.IsSession(id) {
			return nil, newEnd(wire.CauseInvalid, fmt.Sprintf("the session %q is not a UUID", id))
		}
	}
	dir := filepath.Join(set.Home, wire.SessionDir)
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the sessions' directory: %w", err)
	}
	at := func(id string) string { return filepath.Join(dir, id+".jsonl") }
	if set.Resume == "" {
		s := &session{id: set.Session}
		if s.id == "" {
			s.id = newID()
		}
		return s, s.create(at(s.id), nil)
	}
	old, err := os.ReadFile(at(set.Resume))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, newEnd(wire.CauseNoSession, "there is no session "+set.Resume)
	}
	if err != nil {
		return nil, fmt.Errorf("read the session: %w", err)
	}
	s := &session{id: set.Resume}
	old, err = s.read(old)
	if err != nil {
		return nil, newEnd(wire.CauseNoSession, "the session "+set.Resume+" cannot be read: "+err.Error())
	}
	if set.Fork {
		if s.id = set.Session; s.id == "" {
			s.id = newID()
		}
		err = s.create(at(s.id), old)
	} else {
		err = s.reopen(at(s.id), int64(len(old)))
	}
	if err == nil {
		err = s.closePendingCalls()
	}
	return s, err
}

// create creates the file of a new session with the given initial content.
func (s *session) create(path string, begin []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return newEnd(wire.CauseInvalid, "the session "+s.id+" exists already")
	}
	if err != nil {
		return fmt.Errorf("create the session: %w", err)
	}
	s.file = f
	if _, err := f.Write(begin); err != nil {
		return fmt.Errorf("copy the session: %w", err)
	}
	return nil
}

// reopen opens the file and removes an incomplete last line.
func (s *session) reopen(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("open the session: %w", err)
	}
	s.file = f
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("remove the session's incomplete line: %w", err)
	}
	return nil
}

// read parses the messages of a file and returns its complete lines.
func (s *session) read(data []byte) ([]byte, error) {
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(data) {
		var m anthropic.MessageParam
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, err
		}
		if m.Role != anthropic.MessageParamRoleUser && m.Role != anthropic.MessageParamRoleAssistant || len(m.Content) == 0 {
			return nil, errors.New("it contains an invalid message")
		}
		s.messages, s.starts = append(s.messages, m), append(s.starts, s.size)
		s.size += int64(len(line))
	}
	return data, nil
}

// closePendingCalls answers the tool calls of the last message, if a kill left them without results.
func (s *session) closePendingCalls() error {
	if len(s.messages) == 0 {
		return nil
	}
	last := s.messages[len(s.messages)-1]
	var results []anthropic.ContentBlockParamUnion
	for _, b := range last.Content {
		if b.OfToolUse != nil {
			results = append(results, anthropic.NewToolResultBlock(b.OfToolUse.ID, interrupted, true))
		}
	}
	if results == nil {
		return nil
	}
	return s.add(anthropic.NewUserMessage(results...))
}

// add stores a message. It has been written to the file when add returns.
func (s *session) add(m anthropic.MessageParam) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("store a message: %w", err)
	}
	s.messages, s.starts = append(s.messages, m), append(s.starts, s.size)
	s.size += int64(len(line)) + 1
	return nil
}

// close syncs the file and its folder, because a VM's work is packed from it.
func (s *session) close() error {
	if s.file == nil {
		return nil
	}
	if err := errors.Join(s.file.Sync(), s.file.Close(), durable.SyncDir(filepath.Dir(s.file.Name()))); err != nil {
		return fmt.Errorf("close the session: %w", err)
	}
	return nil
}
