package simcodex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
)

// item is one part of a conversation in the format of the Responses API.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Role      string          `json:"role,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Summary   json.RawMessage `json:"summary,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments string          `json:"arguments,omitempty"`
	Input     string          `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
}

// content returns a message's content with one part.
func content(kind, text string) json.RawMessage {
	data, err := json.Marshal([]map[string]string{{"type": kind, "text": text}})
	if err != nil {
		return json.RawMessage("[]")
	}
	return data
}

// quoted encodes a text as JSON.
func quoted(text string) json.RawMessage {
	data, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return data
}

// text returns the text of a message or reasoning.
func (it item) text() string {
	var parts []struct {
		Text string `json:"text"`
	}
	raw := it.Content
	if len(it.Summary) > 0 {
		raw = it.Summary
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var all []string
	for _, p := range parts {
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n")
}

// usage is the token count of a conversation, including earlier processes.
type usage struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

// thread is a conversation and its file.
type thread struct {
	id, path string
	items    []item
	used     usage
}

// record is one line of a thread's file.
type record struct {
	Time    string          `json:"timestamp"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// openThread finds the conversation to resume, or starts one.
func openThread(home, cwd string, opt options, now time.Time) (*thread, error) {
	t := &thread{}
	if uuid.Validate(opt.resume) == nil {
		found, err := filepath.Glob(filepath.Join(home, "sessions", "*", "*", "*", "rollout-*-"+opt.resume+".jsonl"))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("thread/resume: thread/resume failed: no rollout found for thread id %s (code -32600)", opt.resume)
		}
		if err := t.replay(found[0]); err != nil {
			return nil, err
		}
		if !opt.fork {
			t.id, t.path = opt.resume, found[0]
			return t, nil
		}
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	t.id = id.String()
	t.path = filepath.Join(home, "sessions", now.UTC().Format("2006/01/02"), "rollout-"+now.UTC().Format("2006-01-02T15-04-05")+"-"+t.id+".jsonl")
	before := t.items
	t.items = nil
	if err := t.write("session_meta", map[string]string{"id": t.id, "cwd": cwd, "cli_version": Version}); err != nil {
		return nil, err
	}
	for _, it := range before {
		if err := t.add(it); err != nil {
			return nil, err
		}
	}
	return t, t.use(usage{})
}

// replay reads the complete lines of a file. A call without a result gets one.
func (t *thread) replay(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	answered := map[string]bool{}
	var all []item
	for line := range bytes.Lines(data) {
		var r record
		if json.Unmarshal(line, &r) != nil {
			continue
		}
		var it item
		switch r.Type {
		case "token_count":
			_ = json.Unmarshal(r.Payload, &t.used) // written by this package
		case "response_item":
			if json.Unmarshal(r.Payload, &it) == nil {
				all = append(all, it)
				answered[it.CallID] = answered[it.CallID] || strings.HasSuffix(it.Type, "_output")
			}
		}
	}
	for _, it := range all {
		t.items = append(t.items, it)
		if strings.HasSuffix(it.Type, "_call") && !answered[it.CallID] {
			t.items = append(t.items, item{Type: it.Type + "_output", CallID: it.CallID, Output: quoted("aborted")})
		}
	}
	return nil
}

// add appends an item to the conversation and its file.
func (t *thread) add(it item) error {
	t.items = append(t.items, it)
	return t.write("response_item", it)
}

// use adds to the usage.
func (t *thread) use(u usage) error {
	t.used.Input += u.Input
	t.used.Output += u.Output
	t.used.Details.Cached += u.Details.Cached
	return t.write("token_count", t.used)
}

func (t *thread) write(kind string, payload any) error {
	data, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	line, err := json.Marshal(record{Time: time.Now().UTC().Format(time.RFC3339Nano), Type: kind, Payload: data})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(t.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.Write(append(line, '\n'))
	return err
}
