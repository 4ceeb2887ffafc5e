package simmodel_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simmodel"
)

const key = "sk-test"

// serve starts a server for the test.
func serve(t *testing.T, cfg simmodel.Config) (*simmodel.Server, string) {
	t.Helper()
	srv, err := simmodel.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return srv, web.URL
}

// example returns the script in the package's test data.
func example(t *testing.T) simmodel.Script {
	t.Helper()
	data, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := simmodel.ParseScript(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fixed returns a script with one rule for all requests.
func fixed(turns ...simmodel.Turn) simmodel.Script {
	return simmodel.Script{Rules: []simmodel.Rule{{Turns: turns}}}
}

// msg returns a message of a request.
type msg struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

func user(text string) msg { return msg{"user", text} }

// said returns a response of the model with one tool call, and the call's result.
func said(id string) msg {
	return msg{"assistant", []map[string]any{{"type": "tool_use", "id": id, "name": "Bash", "input": map[string]any{}}}}
}

func told(id, text string, isError bool) msg {
	return msg{"user", []map[string]any{
		{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": isError},
		{"type": "text", "text": "<system-reminder>be brief</system-reminder>"},
	}}
}

// post sends the messages and returns the response with the received part of its body.
func post(t *testing.T, url string, stream bool, messages ...msg) (*http.Response, string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": "claude-sonnet-5", "max_tokens": 1000, "stream": stream, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	return postRaw(t, url, key, string(body))
}

func postRaw(t *testing.T, url, bearer, body string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages?beta=true", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
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

// reply is an unstreamed message.
type reply struct {
	Content []struct {
		Type, Text, Thinking, Name string
		Input                      map[string]any
	}
	StopReason string `json:"stop_reason"`
	Usage      simmodel.Usage
}

// ask sends the messages unstreamed and decodes the response.
func ask(t *testing.T, url string, messages ...msg) reply {
	t.Helper()
	res, body := post(t, url, false, messages...)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("got status %d: %s", res.StatusCode, body)
	}
	var r reply
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// text joins the texts of a response.
func (r reply) text() string {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

func TestChoosesByConversation(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Script: example(t), Key: key})
	plan := user("errand-step: preliminary_plan\nFix it.")
	for name, tc := range map[string]struct {
		messages []msg
		want     string
	}{
		"first turn":                   {[]msg{plan}, "Let me look."},
		"second turn":                  {[]msg{plan, said("t1"), told("t1", "a.go:1: Reverse", false)}, "Found:\na.go:1: Reverse"},
		"another rule":                 {[]msg{user("errand-step: preliminary_plan\nChange request: less")}, "The plan, with less.\n\n```errand\n{\"outcome\":\"build\",\"approaches\":[{\"n\":1,\"title\":\"less\"}]}\n```\n"},
		"the newest prompt":            {[]msg{plan, said("t1"), told("t1", "x", false), user("errand-step: review\nthread 4: a\nthread 15: b")}, "[4][15]"},
		"step of an earlier prompt":    {[]msg{user("errand-step: review"), {"assistant", "ok"}, user("thread 7: again")}, "[7]"},
		"failed tool":                  {[]msg{user("errand-step: implement"), said("t1"), told("t1", "ok", false), said("t2"), told("t2", "no", true)}, "The tests fail."},
		"succeeded tool":               {[]msg{user("errand-step: implement"), said("t1"), told("t1", "ok", true), said("t2"), told("t2", "yes", false)}, "Done."},
		"system message in the middle": {[]msg{plan, {"system", "context"}}, "Let me look."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, ask(t, url, tc.messages...).text()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Script: example(t), Key: key})
	for name, tc := range map[string]struct {
		bearer, body string
		status       int
		want         string
	}{
		"wrong key":      {"wrong", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, 401, "authentication_error"},
		"no JSON":        {key, `{`, 400, "invalid_request_error"},
		"no model":       {key, `{"messages":[{"role":"user","content":"x"}]}`, 400, "model: Field required"},
		"no messages":    {key, `{"model":"m"}`, 400, "at least one message"},
		"odd content":    {key, `{"model":"m","messages":[{"role":"user","content":7}]}`, 400, "messages.0"},
		"no rule":        {key, `{"model":"m","messages":[{"role":"user","content":"errand-step: dance"}]}`, 400, `no rule for step \"dance\"`},
		"after the last": {key, `{"model":"m","messages":[{"role":"user","content":"errand-step: review"},{"role":"assistant","content":"x"}]}`, 400, "has 1 turns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, body := postRaw(t, url, tc.bearer, tc.body)
			if res.StatusCode != tc.status || !strings.Contains(body, tc.want) || !strings.Contains(body, `"type":"error"`) {
				t.Errorf("got status %d, body %s; want %d and %q", res.StatusCode, body, tc.status, tc.want)
			}
		})
	}
}
