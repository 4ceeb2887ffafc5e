package simmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// callPrefix starts the IDs of calls; the response's number and the call's number in it follow.
const callPrefix = "call_sim"

// outputItem is one item of a response, in its complete wire format.
type outputItem struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Status string `json:"status,omitempty"`
	Role   string `json:"role,omitempty"`
	// Content of a message and Summary of a reasoning are lists of parts; they may be present and empty.
	Content any    `json:"content,omitempty"`
	Summary any    `json:"summary,omitempty"`
	CallID  string `json:"call_id,omitempty"`
	Name    string `json:"name,omitempty"`
	// Namespace is the MCP server of a function.
	Namespace string `json:"namespace,omitempty"`
	// Arguments of a function are JSON in a string; Input of a custom tool is free text.
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"`

	text string // of a message or reasoning
	part string // kind of a message's single part
}

// responsesAnswer is a complete response.
type responsesAnswer struct {
	ID         string            `json:"id"`
	Object     string            `json:"object"`
	CreatedAt  int64             `json:"created_at"`
	Status     string            `json:"status"`
	Model      string            `json:"model"`
	Output     []outputItem      `json:"output"`
	Error      any               `json:"error"`
	Incomplete map[string]string `json:"incomplete_details"`
	Usage      map[string]any    `json:"usage"`
}

// responses converts the response of a play to the format of the Responses API.
func responses(p play, createdAt int64) responsesAnswer {
	a := p.answer
	number := strings.TrimPrefix(a.ID, "msg_sim")
	out := responsesAnswer{ID: "resp_sim" + number, Object: "response", CreatedAt: createdAt, Status: "completed", Model: a.Model, Output: []outputItem{}}
	for i, b := range a.Content {
		out.Output = append(out.Output, p.offer.item(b, fmt.Sprintf("%s_%d", number, i), a.Stop))
	}
	if a.Stop != nil && *a.Stop == "max_tokens" {
		out.Status, out.Incomplete = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	input := a.Usage.Input + a.Usage.CacheRead + a.Usage.CacheWrite
	out.Usage = map[string]any{
		"input_tokens": input, "input_tokens_details": map[string]int{"cached_tokens": a.Usage.CacheRead},
		"output_tokens": a.Usage.Output, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
		"total_tokens": input + a.Usage.Output,
	}
	return out
}

// item converts one content block to an item of the Responses API.
func (o offer) item(b block, id string, stop *string) outputItem {
	switch b.Type {
	case "thinking":
		summary := []map[string]any{{"type": "summary_text", "text": b.Thinking}}
		return outputItem{Type: "reasoning", ID: "rs_sim" + id, Summary: summary, text: b.Thinking}
	case "tool_use":
		var input map[string]any
		_ = json.Unmarshal(b.Input, &input) // it was written by build
		if b.Name == "StructuredOutput" && o.schema {
			return words(id, string(b.Input), false)
		}
		name, args := o.call(b.Name, input)
		if text, custom := args.(string); custom {
			return outputItem{Type: "custom_tool_call", ID: "ctc_sim" + id, Status: "completed", CallID: callPrefix + id, Name: name, Input: &text}
		}
		text := string(encode(args))
		space, name := o.namespace(name)
		return outputItem{
			Type: "function_call", ID: "fc_sim" + id, Status: "completed", CallID: callPrefix + id, Namespace: space, Name: name, Arguments: &text,
		}
	}
	return words(id, b.Text, stop != nil && *stop == "refusal")
}

// words returns a message of the model.
func words(id, text string, refusal bool) outputItem {
	kind, part := "output_text", map[string]any{"type": "output_text", "text": text, "annotations": []any{}}
	if refusal {
		kind, part = "refusal", map[string]any{"type": "refusal", "refusal": text}
	}
	return outputItem{
		Type: "message", ID: "msg_sim" + id, Status: "completed", Role: "assistant", Content: []map[string]any{part}, text: text, part: kind,
	}
}

// call translates a call from the names in scripts to the tools that the client offers. Without a matching tool it uses
// the client's shell; unknown names are kept.
func (o offer) call(name string, input map[string]any) (string, any) {
	str := func(key string) string { s, _ := input[key].(string); return s }
	file := str("file_path")
	switch {
	case o.tools[name]:
		if text, ok := input["input"].(string); ok && name == "apply_patch" {
			return name, text
		}
		return name, input
	case name == "Bash":
		return o.shell(str("command"))
	case name == "Write" && o.tools["apply_patch"]:
		return "apply_patch", addFile(file, str("content"))
	case name == "Write":
		return o.shell("printf %s " + shellQuote(str("content")) + " > " + shellQuote(file))
	case name == "Edit":
		return o.shell(replaceIn(file, str("old_string"), str("new_string")))
	case name == "Read":
		return o.shell("cat " + shellQuote(file))
	}
	return name, input
}

// namespace splits the name of an MCP tool if the client does not offer it by its full name: such tools are found by
// search and then called as part of their server.
func (o offer) namespace(name string) (space, short string) {
	rest, found := strings.CutPrefix(name, "mcp__")
	server, tool, both := strings.Cut(rest, "__")
	if !found || !both || o.tools[name] {
		return "", name
	}
	return "mcp__" + server, tool
}

// shell returns a command in the format of the client's shell tool.
func (o offer) shell(command string) (string, any) {
	switch {
	case o.tools["exec_command"]:
		const longest = 30_000 // otherwise the tool returns while the command is running
		return "exec_command", map[string]any{"cmd": command, "yield_time_ms": longest}
	case o.tools["shell_command"]:
		return "shell_command", map[string]any{"command": command}
	case o.tools["shell"]:
		return "shell", map[string]any{"command": []string{"bash", "-lc", command}}
	}
	return "Bash", map[string]any{"command": command}
}

// addFile returns a patch that writes a file.
func addFile(file, content string) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n*** Add File: " + file + "\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(content, "\n"), "\n") {
		b.WriteString("+" + line + "\n")
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}

// replaceIn returns a command that replaces the first occurrence of a text in a file, and fails if there is none.
func replaceIn(file, from, to string) string {
	// The whole file is one record: concatenating its lines would take quadratic time.
	const program = `BEGIN{RS="\001"} {t=t $0} END{i=index(t,ENVIRON["OLD"]); if(!i) exit 1; ` +
		`printf "%s%s%s", substr(t,1,i-1), ENVIRON["NEW"], substr(t,i+length(ENVIRON["OLD"]))}`
	quoted := shellQuote(file)
	return "new=$(mktemp) && OLD=" + shellQuote(from) + " NEW=" + shellQuote(to) + " awk " + shellQuote(program) + " " + quoted +
		` > "$new" && cat "$new" > ` + quoted + ` && rm "$new"`
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// openAIError is an error in the API's format. Scripts use the statuses of the Messages API, which are converted to the
// Responses API's equivalents.
type openAIError struct {
	Type     string  `json:"type"`
	Code     *string `json:"code"`
	Message  string  `json:"message"`
	Param    *string `json:"param"`
	ResetsIn int     `json:"resets_in_seconds,omitempty"`
}

// openAI returns the status and the body of an error. The error for a conversation that is too long is only sent in a
// stream.
func (e apiError) openAI() (status int, body openAIError, inStream bool) {
	status, body = e.Status, openAIError{Type: "invalid_request_error", Message: e.Message}
	code := ""
	switch {
	case e.Status == http.StatusUnauthorized:
		code = "invalid_api_key"
	case e.Status == http.StatusPaymentRequired:
		status, body.Type, code = http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota"
	case e.Status == http.StatusNotFound:
		code, body.Message = "model_not_found", "The requested model does not exist. "+e.Message
	case e.Status == http.StatusRequestEntityTooLarge, e.Status == http.StatusBadRequest && strings.Contains(e.Message, "too long"):
		status, code, inStream = http.StatusBadRequest, "context_length_exceeded", e.Stream
	case e.Status == http.StatusTooManyRequests && strings.Contains(e.Message, "usage limit"):
		body.Type, body.ResetsIn = "usage_limit_reached", e.RetryAfter
	case e.Status == http.StatusTooManyRequests:
		body.Type, code = "requests", "rate_limit_exceeded"
	case e.Status == 529:
		status, body.Type, code = http.StatusServiceUnavailable, "server_error", "server_is_overloaded"
	case e.Status >= http.StatusInternalServerError:
		body.Type = "server_error"
	}
	if code != "" {
		body.Code = &code
	}
	if body.Message == "" {
		body.Message = defaultMessage(e.Status)
	}
	return status, body, inStream
}

func (responsesAPI) fail(w http.ResponseWriter, e apiError, id string) {
	for k, v := range e.Header {
		w.Header().Set(k, v)
	}
	if e.RetryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	w.Header().Set("X-Request-Id", id)
	status, body, inStream := e.openAI()
	if inStream {
		failedStream(w, body, id)
		return
	}
	writeJSON(w, status, map[string]any{"error": body})
}
