package agentloop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agentloop"
	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

const (
	idA = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"
	idB = "1d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"
)

// world is a workspace, a home and a model.
type world struct {
	t          *testing.T
	work, home string
	sim        *simmodel.Server
	url        string
	options    agentloop.Options // in addition to those of run
}

func newWorld(t *testing.T, turns ...simmodel.Turn) *world {
	t.Helper()
	sim, err := simmodel.New(simmodel.Config{Key: "tok", Script: simmodel.Script{Rules: []simmodel.Rule{{Turns: turns}}}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(sim)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return &world{t: t, work: t.TempDir(), home: t.TempDir(), sim: sim, url: web.URL}
}

func (w *world) settings() wire.Settings {
	return wire.Settings{WorkDir: w.work, Home: w.home, Model: "claude-x", MaxTurns: 10, BaseURL: w.url, Token: "tok"}
}

// run runs the loop and returns its lines and its result.
func (w *world) run(ctx context.Context, set wire.Settings, prompt string) ([]wire.Line, wire.Result) {
	w.t.Helper()
	var out bytes.Buffer
	n := 0
	opt := w.options
	opt.Retries, opt.RetryWait, opt.Env = 2, time.Millisecond, os.Environ()
	opt.NewID = func() string { n++; return fmt.Sprintf("%08d-8f5e-4c39-9a44-1f2a3b4c5d6e", n) }
	code := agentloop.Run(ctx, set, prompt, &out, opt)
	var lines []wire.Line
	for line := range bytes.Lines(out.Bytes()) {
		var l wire.Line
		if err := json.Unmarshal(line, &l); err != nil {
			w.t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, l)
	}
	last := lines[len(lines)-1]
	if last.Type != wire.TypeResult || last.Result == nil {
		w.t.Fatalf("the last line is %+v", last)
	}
	if (code == 0) != (last.Result.Cause == wire.CauseOK) {
		w.t.Errorf("code %d, cause %s", code, last.Result.Cause)
	}
	return lines, *last.Result
}

func (w *world) need(r wire.Result, cause string) {
	w.t.Helper()
	if r.Cause != cause {
		w.t.Fatalf("cause %q (%s), want %q", r.Cause, r.Message, cause)
	}
}

// lastBody is the last request as the model got it.
func (w *world) lastBody() string {
	w.t.Helper()
	all := w.sim.Requests()
	return string(all[len(all)-1].Body)
}

func (w *world) sessionFile(id string) string {
	return filepath.Join(w.home, wire.SessionDir, id+".jsonl")
}

func TestTornSessionIsRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Thinking: "hm <b>", Text: "first", Bash: []string{"echo one", "echo two"}}, simmodel.Turn{Text: "second"})
	set := w.settings()
	set.Session = idA
	_, r := w.run(t.Context(), set, "begin")
	w.need(r, wire.CauseOK)
	data, err := os.ReadFile(w.sessionFile(idA))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	// As a kill leaves it: both calls were stored, their results half.
	torn := lines[0] + lines[1] + lines[2][:len(lines[2])/2]
	if err := os.WriteFile(w.sessionFile(idA), []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	set.Session, set.Resume = "", idA
	_, r = w.run(t.Context(), set, "go on")
	w.need(r, wire.CauseOK)
	if r.Session != idA || r.Text != "second" && r.Text != "first" {
		t.Errorf("result %+v", r)
	}
	var body struct {
		Messages []struct {
			Role    string
			Content []map[string]any
		}
	}
	if err := json.Unmarshal([]byte(w.sim.Requests()[2].Body), &body); err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range body.Messages {
		roles = append(roles, m.Role)
	}
	if got := strings.Join(roles, " "); got != "user assistant user user" {
		t.Fatalf("messages of %s", got)
	}
	thinking := body.Messages[1].Content[0]
	if thinking["thinking"] != "hm <b>" || thinking["signature"] == "" {
		t.Errorf("the thinking came back as %v", thinking)
	}
	for i, c := range body.Messages[2].Content {
		if c["type"] != "tool_result" || c["tool_use_id"] != body.Messages[1].Content[2+i]["id"] || c["is_error"] != true {
			t.Errorf("result %d: %v", i, c)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "ok"})
	set := w.settings()
	set.Session = idA
	_, r := w.run(t.Context(), set, "one")
	w.need(r, wire.CauseOK)
	if info, err := os.Stat(w.sessionFile(idA)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("session file: %v %v", info.Mode(), err)
	}
	_, r = w.run(t.Context(), set, "again")
	w.need(r, wire.CauseInvalid)
	set.Session, set.Resume, set.Fork = idB, idA, true
	_, r = w.run(t.Context(), set, "two")
	w.need(r, wire.CauseOK)
	if r.Session != idB || !strings.Contains(w.lastBody(), "one") {
		t.Errorf("the fork is %s and knows %s", r.Session, w.lastBody())
	}
	set.Fork, set.Session, set.Resume = false, "", "../../etc/passwd"
	_, r = w.run(t.Context(), set, "three")
	w.need(r, wire.CauseInvalid)
	if err := os.WriteFile(w.sessionFile(idA), []byte("{\"role\":\"user\"}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set.Resume = idA
	_, r = w.run(t.Context(), set, "four")
	w.need(r, wire.CauseNoSession)
}

// TestCaching: system text and the two newest user messages are marked, within the API's limit.
func TestCaching(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Bash: []string{"true"}}, simmodel.Turn{Bash: []string{"true"}}, simmodel.Turn{Text: "end"})
	set := w.settings()
	set.System = "rules"
	_, r := w.run(t.Context(), set, "begin")
	w.need(r, wire.CauseOK)
	var body struct {
		System   []map[string]any
		Messages []struct{ Content []map[string]any }
	}
	if err := json.Unmarshal([]byte(w.lastBody()), &body); err != nil {
		t.Fatal(err)
	}
	var marks []string
	for i, s := range body.System {
		if s["cache_control"] != nil {
			marks = append(marks, fmt.Sprintf("system %d", i))
		}
	}
	for i, m := range body.Messages {
		for _, c := range m.Content {
			if c["cache_control"] != nil {
				marks = append(marks, fmt.Sprintf("message %d", i))
			}
		}
	}
	if got := strings.Join(marks, ", "); got != "system 1, message 2, message 4" {
		t.Errorf("marked: %s", got)
	}
	if data, err := os.ReadFile(w.sessionFile(r.Session)); err != nil || strings.Contains(string(data), "cache_control") {
		t.Errorf("the marks are stored: %v", err)
	}
}

func TestFailuresAreReported(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		turn    simmodel.Turn
		cause   string
		retries string
	}{
		"cut stream, then whole":        {simmodel.Turn{Text: "a long answer of many words", Cut: 1, Times: 1}, wire.CauseOK, "network"},
		"cut again and again":           {simmodel.Turn{Text: "a long answer of many words", Cut: 1, Times: -1}, wire.CauseNetwork, "network network"},
		"overloaded, then not":          {simmodel.Turn{Text: "ok", Status: 529, Times: 2}, wire.CauseOK, "overloaded overloaded"},
		"limited, soon over":            {simmodel.Turn{Text: "ok", Status: 429, Times: 1}, wire.CauseOK, "rate_limit"},
		"limited for an hour":           {simmodel.Turn{Text: "ok", Status: 429, RetryAfter: 3600, Times: -1}, wire.CauseRateLimited, ""},
		"refusal":                       {simmodel.Turn{Text: "no", Stop: "refusal"}, wire.CauseRefused, ""},
		"window exceeded":               {simmodel.Turn{Text: "no", Stop: "model_context_window_exceeded"}, wire.CauseContextOverflow, ""},
		"too long":                      {simmodel.Turn{Status: 400, Message: "prompt is too long: 2 > 1", Times: -1}, wire.CauseContextOverflow, ""},
		"no credit, as the API says it": {simmodel.Turn{Status: 400, Message: "Your credit balance is too low to access the API", Times: -1}, wire.CauseBilling, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.turn)
			lines, r := w.run(t.Context(), w.settings(), "work")
			w.need(r, test.cause)
			var retries []string
			for _, l := range lines {
				if l.Type == wire.TypeRetry {
					retries = append(retries, l.Text)
				}
			}
			if got := strings.Join(retries, " "); got != test.retries {
				t.Errorf("retries %q, want %q", got, test.retries)
			}
			if name == "limited for an hour" && r.ResetAt < time.Now().Add(50*time.Minute).Unix() {
				t.Errorf("reset at %d", r.ResetAt)
			}
		})
	}
}

// TestErrorInStream: the status of an error event within an answer derives from its kind.
func TestErrorInStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "never"})
	calls := 0
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		calls++
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n")
	}))
	t.Cleanup(web.Close)
	set := w.settings()
	set.BaseURL = web.URL
	_, r := w.run(t.Context(), set, "work")
	w.need(r, wire.CauseOverloaded)
	if calls != 3 || r.HTTP != 529 {
		t.Errorf("%d calls, HTTP %d", calls, r.HTTP)
	}
}

// TestErrorsWithoutForm: proxies may answer in another format; the status counts.
func TestErrorsWithoutForm(t *testing.T) {
	t.Parallel()
	for status, cause := range map[int]string{403: wire.CauseAuth, 502: wire.CauseOverloaded, 404: wire.CauseInvalid} {
		w := newWorld(t, simmodel.Turn{Text: "never"})
		web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			http.Error(rw, "<html>not today</html>", status)
		}))
		t.Cleanup(web.Close)
		set := w.settings()
		set.BaseURL = web.URL
		_, r := w.run(t.Context(), set, "work")
		w.need(r, cause)
		if r.HTTP != status {
			t.Errorf("HTTP %d, want %d", r.HTTP, status)
		}
	}
}

// TestLongAnswerIsContinued: a truncated answer is continued, and a truncated call is not run.
func TestLongAnswerIsContinued(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Bash: []string{"touch made"}, Stop: "max_tokens"}, simmodel.Turn{Text: "fine"})
	_, r := w.run(t.Context(), w.settings(), "work")
	w.need(r, wire.CauseOK)
	if _, err := os.Stat(filepath.Join(w.work, "made")); err == nil {
		t.Error("a call that was cut off was run")
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"verdict":{"enum":["advance","iterate"]}},"required":["verdict"],"additionalProperties":false}`)
	call := func(v string) simmodel.Turn {
		return simmodel.Turn{Tools: []simmodel.Call{{Name: wire.ToolAnswer, Input: map[string]any{"verdict": v}}}}
	}
	tests := map[string]struct {
		turns []simmodel.Turn
		cause string
		want  string
		asked int
	}{
		"called":                 {[]simmodel.Turn{call("advance"), {Text: "x"}}, wire.CauseOK, `{"verdict":"advance"}`, 1},
		"called wrong, then not": {[]simmodel.Turn{call("maybe"), call("iterate"), {Text: "x"}}, wire.CauseOK, `{"verdict":"iterate"}`, 2},
		"said in a block":        {[]simmodel.Turn{{Text: "So:\n```json\n{\"verdict\":\"advance\"}\n```\n"}}, wire.CauseOK, `{"verdict":"advance"}`, 1},
		"said wrong":             {[]simmodel.Turn{{Text: `{"verdict":"maybe"}`}, {Text: "x"}}, wire.CauseNoAnswer, "", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.turns...)
			set := w.settings()
			set.Schema = schema
			lines, r := w.run(t.Context(), set, "judge")
			if name == "said wrong" {
				// The reminder is a separate prompt to the simulator, so its answer is the same again.
				w.need(r, wire.CauseNoAnswer)
				if !strings.Contains(fmt.Sprint(lines), "did not fit") {
					t.Errorf("the mistake was not reported: %+v", lines)
				}
			}
			w.need(r, test.cause)
			if string(r.Structured) != test.want || len(w.sim.Requests()) != test.asked {
				t.Errorf("answer %s after %d requests", r.Structured, len(w.sim.Requests()))
			}
		})
	}
	w := newWorld(t, simmodel.Turn{Text: "x"})
	set := w.settings()
	set.Schema = json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`)
	_, r := w.run(t.Context(), set, "judge")
	w.need(r, wire.CauseInvalid)
}

// TestTokenIsNotForTools: the environment of tools does not contain the run's token.
func TestTokenIsNotForTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Bash: []string{"env | grep -c '=tok$'"}}, simmodel.Turn{Text: "end"})
	lines, r := w.run(t.Context(), w.settings(), "work")
	w.need(r, wire.CauseOK)
	for _, l := range lines {
		if l.Type == wire.TypeToolResult && l.Text != "Exit code 1\n0" {
			t.Errorf("the tool saw %q", l.Text)
		}
	}
}
