package simmodel_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/sim/simmodel"
)

func TestParseScriptRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ script, want string }{
		"empty":        {"  \n", "empty"},
		"unknown key":  {"rules:\n- turn: []\n", "turn"},
		"no turns":     {"rules:\n- name: x\n", "x: it has no turns"},
		"bad match":    {"rules:\n- match: '('\n  turns: [{text: a}]\n", "rule 1: match"},
		"bad template": {"rules:\n- turns: [{text: '{{.Nope'}]\n", "turn 0"},
		"bad function": {"rules:\n- turns: [{text: '{{nope}}'}]\n", "nope"},
		"status":       {"rules:\n- turns: [{status: 42}]\n", "42"},
		"cut":          {"rules:\n- turns: [{cut: -1}]\n", "cut"},
		"no name":      {"rules:\n- turns: [{tools: [{input: {a: b}}]}, {text: x}]\n", "no name"},
		"tools last":   {"rules:\n- turns: [{bash: [ls]}]\n", "last turn"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := simmodel.ParseScript([]byte(tc.script)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestRoundAndRepeat(t *testing.T) {
	t.Parallel()
	s, err := simmodel.ParseScript([]byte(`
rules:
- {step: judge, round: 2, turns: [{text: second}]}
- {step: judge, not: loop, turns: [{text: first}]}
- {match: loop, repeat: true, turns: [{bash: ['echo {{.Turn}}']}]}
- {system: special, turns: [{text: by system}]}
- {turns: [{text: 'rest of {{.Model}}, {{len .Tools}} tools'}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	_, url := serve(t, simmodel.Config{Script: s, Key: key})
	judge := user("errand-step: judge")
	if got := ask(t, url, judge).text(); got != "first" {
		t.Errorf("round 1: got %q", got)
	}
	if got := ask(t, url, judge, msg{"assistant", "no"}, judge).text(); got != "second" {
		t.Errorf("round 2: got %q", got)
	}
	if got := ask(t, url, user("loop"), said("a"), told("a", "", false), said("b"), told("b", "", false)); got.Content[0].Input["command"] != "echo 2" {
		t.Errorf("repeated turn: got %+v", got)
	}
	if got := ask(t, url, user("x")).text(); got != "rest of claude-sonnet-5, 0 tools" {
		t.Errorf("default: %q", got)
	}
	_, body := postRaw(t, url, key, `{"model":"m","system":[{"type":"text","text":"a special one"}],"messages":[{"role":"user","content":"x"}]}`)
	if !strings.Contains(body, "by system") {
		t.Errorf("by system prompt: got %s", body)
	}
}

func TestScriptIsReplaced(t *testing.T) {
	t.Parallel()
	_, url := serve(t, simmodel.Config{Key: key, Script: fixed(simmodel.Turn{Text: "old"})})
	put := func(body string) int {
		req, err := http.NewRequest(http.MethodPut, url+"/_sim/script", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := webtest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if code := put("rules: [{turns: []}]"); code != http.StatusUnprocessableEntity {
		t.Errorf("invalid script: got status %d", code)
	}
	if got := ask(t, url, user("x")).text(); got != "old" {
		t.Errorf("after an invalid script: got %q", got)
	}
	if code := put("rules: [{turns: [{text: new}]}]"); code != http.StatusNoContent {
		t.Errorf("new script: got status %d", code)
	}
	if got := ask(t, url, user("x")).text(); got != "new" {
		t.Errorf("after a new script: got %q", got)
	}
}

// TestPaceAndDelay measures with a virtual clock that only advances when all goroutines wait.
func TestPaceAndDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, err := simmodel.New(simmodel.Config{Pace: 3, Script: fixed(simmodel.Turn{Text: "a b c d e f ", Delay: time.Minute})})
		if err != nil {
			t.Fatal(err)
		}
		body := strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`)
		began := time.Now()
		srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/messages", body))
		if got := time.Since(began); got != time.Minute+2*time.Second {
			t.Errorf("six words at three a second after a minute took %s", got)
		}
	})
}

// FuzzRequest sends arbitrary requests; the server must answer with JSON or a stream.
func FuzzRequest(f *testing.F) {
	srv, err := simmodel.New(simmodel.Config{Script: simmodel.Script{Rules: []simmodel.Rule{
		{Match: "(a)?", Repeat: true, Turns: []simmodel.Turn{{Text: "{{.Last}} {{.Prompt}} {{index .Groups 0}}", Bash: []string{"{{.Step}}"}}}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"a"}]}]}]}`)
	f.Add(`{"model":"m","stream":true,"messages":[{"role":"assistant","content":null},{"role":"user","content":"errand-step: x"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		srv.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body)))
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("got status %d: %s", w.Code, w.Body)
		}
	})
}
