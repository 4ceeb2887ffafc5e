package simmodel

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
)

// geminiAPI is Google's generateContent as used by Gemini CLI: the path contains the model, and every request contains
// the whole conversation.
type geminiAPI struct{}

var _ dialect = geminiAPI{}

// geminiPath matches a call of a model: the model and the method.
var geminiPath = regexp.MustCompile(`^/v1(?:beta|alpha)?/models/([A-Za-z0-9._-]+):(generateContent|streamGenerateContent)$`)

// geminiRequest is the part of a request that the server uses.
type geminiRequest struct {
	System   geminiContent   `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Functions []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

// geminiPart is one part of a message: text, a call, or a call's result.
type geminiPart struct {
	Text     string          `json:"text,omitempty"`
	Thought  bool            `json:"thought,omitempty"`
	Call     *geminiCall     `json:"functionCall,omitempty"`
	Response *geminiResponse `json:"functionResponse,omitempty"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type geminiResponse struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Response struct {
		Output string `json:"output"`
		Error  string `json:"error"`
	} `json:"response"`
}

func (geminiAPI) read(r *http.Request, body []byte) (request, error) {
	called := geminiPath.FindStringSubmatch(r.URL.Path)
	if called == nil {
		return request{}, errors.New("the path names no model")
	}
	var in geminiRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, err
	}
	if len(in.Contents) == 0 {
		return request{}, errors.New("contents is not specified")
	}
	req := request{Model: called[1], Stream: called[2] == "streamGenerateContent", offer: offer{tools: map[string]bool{}}}
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			req.offer.tools[f.Name] = true
			req.Tools = append(req.Tools, struct {
				Name string `json:"name"`
			}{f.Name})
		}
	}
	var system []string
	for _, p := range in.System.Parts {
		system = append(system, p.Text)
	}
	for _, c := range in.Contents {
		blocks, told := c.blocks()
		system = append(system, told...)
		if len(blocks) == 0 {
			continue
		}
		role := "user"
		if c.Role == "model" {
			role = "assistant"
		}
		req.Messages = append(req.Messages, message{Role: role, Content: encode(blocks)})
	}
	req.System = quote(strings.TrimSpace(strings.Join(system, "\n")))
	return req, nil
}

// blocks returns the parts in the Messages API's format; told are the client's automatic additions.
func (c geminiContent) blocks() (blocks []map[string]any, told []string) {
	for _, p := range c.Parts {
		switch {
		case p.Thought:
		case p.Call != nil:
			blocks = append(blocks, map[string]any{"type": "tool_use", "id": p.Call.ID, "name": p.Call.Name})
		case p.Response != nil:
			blocks = append(blocks, p.Response.block())
		case strings.HasPrefix(strings.TrimSpace(p.Text), "<session_context>"):
			told = append(told, p.Text)
		case p.Text != "":
			blocks = append(blocks, map[string]any{"type": "text", "text": p.Text})
		}
	}
	return blocks, told
}

// geminiShell matches the text that the client's shell tool adds around a command's output.
var geminiShell = regexp.MustCompile(`(?s)\A(?:<untrusted_context>\s*)?Output: (.*?)\n?(?:Error: [^\n]*\n|Exit Code: (\d+)\n?|Signal: [^\n]*\n?|Process Group PGID: \d+\n?|</untrusted_context>\s*)+\z`)

// block returns a tool's result in the Messages API's format. A failed command looks as it does there, so that one
// script works for all APIs.
func (r geminiResponse) block() map[string]any {
	text, failed := r.Response.Output, r.Response.Error != ""
	if failed {
		text = r.Response.Error
	}
	if m := geminiShell.FindStringSubmatch(text); m != nil {
		text = m[1]
		if text == "(empty)" {
			text = ""
		}
		if failed = m[2] != "" && m[2] != "0"; failed {
			text = "Exit code " + m[2] + "\n" + text
		}
	}
	return map[string]any{"type": "tool_result", "tool_use_id": r.ID, "content": text, "is_error": failed}
}
