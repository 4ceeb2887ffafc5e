package simmodel_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// item is one item of a Responses API conversation.
type item map[string]any

func developer(text string) item {
	return item{"type": "message", "role": "developer", "content": text}
}

func asked(text string) item {
	return item{"type": "message", "role": "user", "content": []item{{"type": "input_text", "text": text}}}
}

func called(id string) item {
	return item{"type": "function_call", "call_id": id, "name": "exec_command", "arguments": "{}"}
}

func gave(id, output string) item {
	return item{"type": "function_call_output", "call_id": id, "output": output}
}

// respond sends a conversation to the Responses API.
func respond(t *testing.T, url string, body item, items ...item) (*http.Response, string) {
	t.Helper()
	body["model"] = "gpt-5.5"
	if items != nil {
		body["input"] = items
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/responses", strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil && len(data) == 0 {
		t.Fatal(err)
	}
	return res, string(data)
}

// response is an unstreamed response.
type response struct {
	Status string
	Output []struct {
		Type, Name, Namespace, Arguments, Input string
		CallID                                  string `json:"call_id"`
		Content                                 []struct{ Type, Text, Refusal string }
		Summary                                 []struct{ Text string }
	}
	Usage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Total  int `json:"total_tokens"`
	}
}

// brief returns a response on one line.
func (r response) brief() string {
	var parts []string
	for _, o := range r.Output {
		text := o.Type
		for _, c := range o.Content {
			text += " " + c.Text + c.Refusal
		}
		for _, s := range o.Summary {
			text += " " + s.Text
		}
		for _, s := range []string{o.Namespace, o.Name, o.Arguments, o.Input} {
			if s != "" {
				text += " " + s
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func TestResponsesFollowTheConversation(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Script: example(t), Key: key})
	plan := asked("errand-step: preliminary_plan\nFix it.")
	review := asked("errand-step: review\nthread 4: a\nthread 15: b")
	implement := asked("errand-step: implement")
	for name, tc := range map[string]struct {
		items []item
		want  string
	}{
		"first turn": {[]item{developer("Be brief."), plan}, `reasoning Where is it used?; message Let me look.; function_call Bash {"command":"grep -rn Reverse ."}`},
		"second turn": {
			[]item{plan, {"type": "reasoning"}, {"role": "assistant", "content": []item{{"type": "output_text", "text": "Let me look."}}}, called("a"), gave("a", "a.go:1: Reverse")},
			"message Found:\na.go:1: Reverse",
		},
		"additions by the client are not prompts": {[]item{plan, asked("<environment_context>x</environment_context>"), developer("more")}, "reasoning"},
		"another rule":      {[]item{asked("errand-step: preliminary_plan\nChange request: less")}, "message The plan, with less."},
		"the newest prompt": {[]item{plan, called("a"), gave("a", "x"), review}, "message [4][15]"},
		"calls of one response, with separate outputs": {
			[]item{implement, called("call_sim00000001_0"), gave("call_sim00000001_0", "ok"), called("call_sim00000002_0"), called("call_sim00000002_1"),
				gave("call_sim00000002_0", "Process exited with code 0\nOutput:\nx"), gave("call_sim00000002_1", "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOriginal token count: 1\nOutput:\nno")},
			"message The tests fail.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, body := respond(t, url, item{}, tc.items...)
			var r response
			if err := json.Unmarshal([]byte(body), &r); err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("got status %d: %s: %v", res.StatusCode, body, err)
			}
			if got := r.brief(); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got response %q, want %q", got, tc.want)
			}
			if r.Usage.Input < 1 || r.Usage.Output < 1 || r.Usage.Total != r.Usage.Input+r.Usage.Output {
				t.Errorf("got usage %+v", r.Usage)
			}
		})
	}
}

// TestResponsesUseTheClientsTools: a script works with any client's tools.
func TestResponsesUseTheClientsTools(t *testing.T) {
	t.Parallel()
	tool := func(name string, input map[string]any) simmodel.Turn {
		return simmodel.Turn{Tools: []simmodel.Call{{Name: name, Input: input}}}
	}
	file := map[string]any{"file_path": "a b", "content": "x\n", "old_string": "it's", "new_string": "$y"}
	codex := []item{{"type": "function", "name": "exec_command"}, {"type": "custom", "name": "apply_patch"}, {"type": "tool_search"}}
	for name, tc := range map[string]struct {
		turn  simmodel.Turn
		tools []item
		want  string
	}{
		"command":                   {simmodel.Turn{Bash: []string{"ls"}}, codex, `function_call exec_command {"cmd":"ls","yield_time_ms":30000}`},
		"older shell":               {simmodel.Turn{Bash: []string{"ls"}}, []item{{"name": "shell"}}, `function_call shell {"command":["bash","-lc","ls"]}`},
		"shell as one text":         {simmodel.Turn{Bash: []string{"ls"}}, []item{{"name": "shell_command"}}, `function_call shell_command {"command":"ls"}`},
		"write":                     {tool("Write", file), codex, "custom_tool_call apply_patch *** Begin Patch\n*** Add File: a b\n+x\n*** End Patch\n"},
		"write without apply_patch": {tool("Write", file), codex[:1], `function_call exec_command {"cmd":"printf %s 'x\n' \u003e 'a b'","yield_time_ms":30000}`},
		"read":                      {tool("Read", file), codex, `function_call exec_command {"cmd":"cat 'a b'","yield_time_ms":30000}`},
		"patch":                     {tool("apply_patch", map[string]any{"input": "*** Begin"}), codex, "custom_tool_call apply_patch *** Begin"},
		"of a server":               {tool("mcp__orch__note", map[string]any{"a": 1}), codex, `function_call mcp__orch note {"a":1}`},
		"offered":                   {tool("mcp__orch__note", nil), []item{{"name": "mcp__orch__note"}}, `function_call mcp__orch__note {}`},
		"unknown":                   {tool("Nope", nil), codex, `function_call Nope {}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := serve(t, simmodel.Config{Key: key, Script: fixed(tc.turn, simmodel.Turn{Text: "end"})})
			_, body := respond(t, url, item{"tools": tc.tools}, asked("x"))
			var r response
			if err := json.Unmarshal([]byte(body), &r); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			if diff := cmp.Diff(tc.want, r.brief()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResponsesAnswerASchema(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Key: key, Script: fixed(simmodel.Turn{Tools: []simmodel.Call{{Name: "StructuredOutput", Input: map[string]any{"a": 1}}}}, simmodel.Turn{Text: "end"})})
	_, body := respond(t, url, item{"input": "x", "text": item{"format": item{"type": "json_schema"}}})
	var r response
	if err := json.Unmarshal([]byte(body), &r); err != nil || r.brief() != `message {"a":1}` {
		t.Errorf("got %q, %v", r.brief(), err)
	}
}

func TestResponsesStream(t *testing.T) {
	t.Parallel()
	srv, url := serve(t, simmodel.Config{Key: key, Script: fixed(
		simmodel.Turn{Thinking: "hm", Text: "one two three four", Bash: []string{"ls"}}, simmodel.Turn{Text: "end"},
	)})
	res, body := respond(t, url, item{"stream": true}, asked("x"))
	if ct := res.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Errorf("got content type %q", ct)
	}
	var kinds []string
	text, number := "", 0
	var last struct{ Response response }
	for line := range strings.SplitSeq(body, "\n") {
		data, found := strings.CutPrefix(line, "data: ")
		if !found {
			continue
		}
		var e struct {
			Type   string
			Delta  string
			Number int `json:"sequence_number"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if e.Number != number {
			t.Errorf("event %d: got number %d", number, e.Number)
		}
		number++
		kind := strings.TrimPrefix(e.Type, "response.")
		if kind == "output_text.delta" {
			text += e.Delta
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
		if kind == "completed" {
			if err := json.Unmarshal([]byte(data), &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		"created", "in_progress",
		"output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done", "output_item.done",
		"output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done",
		"output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done", "completed",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	total := srv.Totals().Usage
	if text != "one two three four" || last.Response.Usage.Output != total.Output || last.Response.Usage.Input != total.Input+total.CacheRead || total.CacheWrite != 0 {
		t.Errorf("got text %q, usage %+v of %+v", text, last.Response.Usage, total)
	}
}

func TestResponsesFail(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		turn   simmodel.Turn
		status int
		want   string
	}{
		"key":              {simmodel.Turn{Status: 401}, 401, `"code":"invalid_api_key"`},
		"credit":           {simmodel.Turn{Status: 402}, 429, `"code":"insufficient_quota"`},
		"model":            {simmodel.Turn{Status: 404}, 404, `"code":"model_not_found"`},
		"too long":         {simmodel.Turn{Status: 400, Message: "prompt is too long"}, 200, "event: response.failed"},
		"invalid":          {simmodel.Turn{Status: 400, Message: "odd"}, 400, `"message":"odd"`},
		"limit":            {simmodel.Turn{Status: 429, RetryAfter: 7}, 429, `"code":"rate_limit_exceeded"`},
		"usage limit":      {simmodel.Turn{Status: 429, Message: "usage limit", RetryAfter: 7}, 429, `"resets_in_seconds":7`},
		"overloaded":       {simmodel.Turn{Status: 529}, 503, `"code":"server_is_overloaded"`},
		"broken":           {simmodel.Turn{Status: 500}, 500, `"type":"server_error"`},
		"cut":              {simmodel.Turn{Text: "a b c d e f g h", Cut: 1}, 200, "output_text.delta"},
		"refusal":          {simmodel.Turn{Text: "no", Stop: "refusal"}, 200, `"refusal":"no"`},
		"context too long": {simmodel.Turn{Text: "a", Stop: "max_tokens"}, 200, "event: response.incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := serve(t, simmodel.Config{Key: key, Script: fixed(tc.turn)})
			res, body := respond(t, url, item{"stream": true}, asked("x"))
			if res.StatusCode != tc.status || !strings.Contains(body, tc.want) {
				t.Errorf("got status %d: %s; want %d and %s", res.StatusCode, body, tc.status, tc.want)
			}
			if name == "cut" && strings.Contains(body, "response.completed") {
				t.Error("the cut stream has an end")
			}
			if after := res.Header.Get("Retry-After"); tc.turn.RetryAfter != 0 && after != "7" {
				t.Errorf("got Retry-After %q", after)
			}
		})
	}
}

func TestResponsesRefuse(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Script: example(t), Key: key})
	for name, tc := range map[string]struct {
		body item
		want string
	}{
		"no input":  {item{"input": []item{}}, "at least one item"},
		"odd input": {item{"input": 7}, "neither a string nor a list"},
		"no rule":   {item{"input": "errand-step: dance"}, "no rule"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, body := respond(t, url, tc.body)
			if res.StatusCode != http.StatusBadRequest || !strings.Contains(body, tc.want) || !strings.Contains(body, `{"error":{"type":"invalid_request_error"`) {
				t.Errorf("got status %d: %s", res.StatusCode, body)
			}
		})
	}
}
