package simmodel_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// geminiModel serves a script that reads, runs a command, and reports its output.
func geminiModel(t *testing.T, turns ...simmodel.Turn) (string, *simmodel.Server) {
	t.Helper()
	s, err := simmodel.New(simmodel.Config{Key: "k", Script: simmodel.Script{Rules: []simmodel.Rule{{Step: "plan", Turns: turns}}}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return web.URL, s
}

// askGemini calls the model and returns the status and the body.
func askGemini(t *testing.T, url, method, key, contents string) (int, string) {
	t.Helper()
	body := `{"systemInstruction":{"parts":[{"text":"Be good."}]},"tools":[{"functionDeclarations":[{"name":"run_shell_command"}]}],"contents":` + contents + `}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1beta/models/gemini-x:"+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Goog-Api-Key", key)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(data) + "CUT"
	}
	return resp.StatusCode, string(data)
}

const (
	geminiPrompt = `{"role":"user","parts":[{"text":"<session_context>errand-step: other</session_context>"},{"text":"errand-step: plan\nLook."}]}`
	geminiCalled = `{"role":"model","parts":[{"text":"Looking."},{"functionCall":{"id":"c1","name":"run_shell_command","args":{"command":"x"}}}]}`
)

func geminiGave(output string) string {
	data, _ := json.Marshal(output)
	return `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"run_shell_command","response":{"output":` + string(data) + `}}}]}`
}

// TestGeminiStream: text is sent in pieces, a call has the client's tool name, and the last piece has the finish reason
// and the usage.
func TestGeminiStream(t *testing.T) {
	t.Parallel()
	url, s := geminiModel(t, simmodel.Turn{
		Thinking: "hm", Text: "one two three four five", Bash: []string{"ls"}, Tools: []simmodel.Call{{Name: "mcp__errand__ask_human"}},
	}, simmodel.Turn{Text: "end"})
	status, body := askGemini(t, url, "streamGenerateContent?alt=sse", "k", "["+geminiPrompt+"]")
	if status != http.StatusOK {
		t.Fatalf("got status %d: %s", status, body)
	}
	type part struct {
		Text    string
		Thought bool
		Call    struct {
			Name string
			Args map[string]string
		} `json:"functionCall"`
	}
	var text, calls, finish string
	var usage map[string]int
	pieces := 0
	for lines := bufio.NewScanner(strings.NewReader(body)); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var a struct {
			Candidates []struct {
				Content struct{ Parts []part }
				Finish  string `json:"finishReason"`
			}
			Usage map[string]int `json:"usageMetadata"`
		}
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			t.Fatal(err)
		}
		pieces++
		for _, p := range a.Candidates[0].Content.Parts {
			if !p.Thought {
				text += p.Text
			}
			if p.Call.Name != "" {
				calls += p.Call.Name + " " + p.Call.Args["command"] + ";"
			}
		}
		finish, usage = a.Candidates[0].Finish, a.Usage
	}
	if text != "one two three four five" || calls != "run_shell_command ls;mcp_errand_ask_human ;" || finish != "STOP" || pieces < 4 {
		t.Errorf("got text %q, calls %q, finish %q in %d pieces", text, calls, finish, pieces)
	}
	u := s.Totals().Usage
	want := map[string]int{
		"promptTokenCount": u.Input + u.CacheRead + u.CacheWrite, "cachedContentTokenCount": u.CacheRead, "candidatesTokenCount": u.Output,
		"totalTokenCount": u.Input + u.CacheRead + u.CacheWrite + u.Output,
	}
	if diff := cmp.Diff(want, usage); diff != "" || u.Output == 0 {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

// TestGeminiConversation: a script gets a command's output in the same form as with the other APIs.
func TestGeminiConversation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ output, want string }{
		"it failed":     {"<untrusted_context>\nOutput: out\nerr\nExit Code: 3\nProcess Group PGID: 12350\n</untrusted_context>", "true Exit code 3\nout\nerr"},
		"success":       {"<untrusted_context>\nOutput: hello\nProcess Group PGID: 1\n</untrusted_context>", "false hello"},
		"no output":     {"<untrusted_context>\nOutput: (empty)\nProcess Group PGID: 1\n</untrusted_context>", "false "},
		"a file":        {"package main\n", "false package main\n"},
		"another shape": {"Output: x\nand more", "false Output: x\nand more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := geminiModel(t, simmodel.Turn{Text: "Looking.", Bash: []string{"x"}}, simmodel.Turn{Text: "{{.Failed}} {{.Last}}"})
			status, body := askGemini(t, url, "generateContent", "k", "["+geminiPrompt+","+geminiCalled+","+geminiGave(tc.output)+"]")
			var a struct {
				Candidates []struct {
					Content struct{ Parts []struct{ Text string } }
				}
			}
			if err := json.Unmarshal([]byte(body), &a); err != nil || status != http.StatusOK {
				t.Fatalf("got status %d, %v: %s", status, err, body)
			}
			if got := a.Candidates[0].Content.Parts[0].Text; got != tc.want {
				t.Errorf("got text %q, want %q", got, tc.want)
			}
		})
	}
}

// TestGeminiFailures: errors have the API's form.
func TestGeminiFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		turn     simmodel.Turn
		key      string
		contents string
		status   int
		says     string
	}{
		"a wrong key": {key: "x", contents: "[" + geminiPrompt + "]", status: 401, says: `"status":"UNAUTHENTICATED"`},
		"a limit": {
			turn: simmodel.Turn{Status: 429, Message: "Quota exceeded", RetryAfter: 7}, key: "k", contents: "[" + geminiPrompt + "]", status: 429,
			says: `"retryDelay":"7s"`,
		},
		"overloaded":      {turn: simmodel.Turn{Status: 503}, key: "k", contents: "[" + geminiPrompt + "]", status: 503, says: `"status":"UNAVAILABLE"`},
		"no conversation": {key: "k", contents: "[]", status: 400, says: `"status":"INVALID_ARGUMENT"`},
		"cut":             {turn: simmodel.Turn{Cut: 1}, key: "k", contents: "[" + geminiPrompt + "]", status: 200, says: "CUT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := tc.turn
			turn.Text = "one two three four five six seven"
			url, _ := geminiModel(t, turn)
			status, body := askGemini(t, url, "streamGenerateContent?alt=sse", tc.key, tc.contents)
			if status != tc.status || !strings.Contains(body, tc.says) {
				t.Errorf("got status %d, want %d with %q: %s", status, tc.status, tc.says, body)
			}
		})
	}
}
