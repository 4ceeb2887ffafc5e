package config_test

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state/settings"
)

// FuzzParseRepo: for every file, parsing ends soon with the same result each time. Errors name the line and fit into a
// comment; accepted settings are usable and never exceed the operator's limits.
func FuzzParseRepo(f *testing.F) {
	for _, s := range []string{
		"", "plan: none\n", "limits: {cost: 999999999999990, turns: 9999999999999999999}\n", "check: [a, {run: b, timeout: 1h}]\n", "a: &x [*x]\n", "<<: {a: b}\n",
		"? [a]\n: b\n", "key: {pattern: '(a+)+$'}\n", "branch: '{key}{slug}'\n", "gate: {protected: ['{a,b}/**'], unprotected: ['!a'], max_bytes: -1}\n", "- - - - -\n", "\"\\x00\": 1\n", "!!int x: 1\n", "%YAML 1.1\n---\n",
		"enabled: true\nplan: one-step\nbase: develop\ncommit: \"{key}: {task}\"\ntitle: |\n  {task}\ndraft: true\nsetup:\n  - name: x\n    run: >\n      a\n      b\n    timeout: 5m\n",
		"trust: {allow_users: [ada], allow_bots: ['b[bot]']}\nlimits:\n  duration: 1h\n  checks: 0\n", "check:\n\t- x\n", "plan: [\n", "'", "{\n}\n}\n", "a: b: c\n", "---\n---\nplan: none\n",
		"env: {A: b, PATH: c}\n", "env:\n  A: |\n    b\ncheck: ['x {changed_files} \"{affected_modules}\"', 'y {affected_modules};z']\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := config.ParseRepo(data, operator(), nil)
		again, err2 := config.ParseRepo(bytes.Clone(data), operator(), nil)
		if !cmp.Equal(s, again) || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("read twice: %+v, %v, then %+v, %v", s, err, again, err2)
		}
		if err != nil {
			if diff := cmp.Diff(operator(), s); diff != "" {
				t.Errorf("an invalid file changes settings (-want +got):\n%s", diff)
			}
			checkInvalid(t, err, data)
			return
		}
		checkSettings(t, s)
	})
}

// checkInvalid checks that an error has the line and the length that people need.
func checkInvalid(t *testing.T, err error, data []byte) {
	t.Helper()
	var bad *config.Invalid
	if !errors.As(err, &bad) || len(bad.Problems) == 0 {
		t.Fatalf("error %v", err)
	}
	if text := err.Error(); len(text) > 20_000 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r\x1b") {
		t.Fatalf("the error does not fit into a comment: %q", text)
	}
	lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
	for i, p := range bad.Problems {
		whole := strings.HasPrefix(p.Text, "the file is larger") || i == len(bad.Problems)-1 && strings.HasPrefix(p.Text, "and ")
		if p.Line < 0 || p.Line > lines || p.Line == 0 && !whole || p.Text == "" || strings.Contains(p.String(), "\n") {
			t.Errorf("problem %d is %+v of %d lines", i, p, lines)
		}
	}
}

// checkSettings compares accepted settings with the operator's and uses them.
func checkSettings(t *testing.T, s settings.Settings) {
	t.Helper()
	top := operator()
	l, m := s.Limits, top.Limits
	if l.Turns > m.Turns || l.Duration > m.Duration || l.PlanDuration > m.PlanDuration || l.MicroUSD > m.MicroUSD || l.Checks > m.Checks {
		t.Errorf("limits %+v exceed %+v", l, m)
	}
	if l.Turns <= 0 || l.Duration <= 0 || l.PlanDuration <= 0 || l.MicroUSD < 0 || l.Checks < 0 {
		t.Errorf("limits %+v", l)
	}
	if err := pushgate.CheckGlobs(slices.Concat(s.Gate.Protected, s.Gate.Unprotected, s.Gate.SecretsAllowedIn)); err != nil || s.Gate.MaxPaths < 0 || s.Gate.MaxBytes < 0 {
		t.Errorf("gate %+v: %v", s.Gate, err)
	}
	if _, err := regexp.Compile(s.Key.Pattern); err != nil || s.Key.Required && s.Key.Pattern == "" {
		t.Errorf("key %+v: %v", s.Key, err)
	}
	for _, template := range []string{s.Branch, s.Commit, s.Title} {
		if _, err := naming.Expand(template, naming.Values{Key: "A-1", Number: 7, Slug: "x", Task: "Do it"}); err != nil {
			t.Errorf("template: %v", err)
		}
	}
	for _, c := range append(s.Setup, s.Check...) {
		if strings.TrimSpace(c.Run) == "" || c.Timeout <= 0 || c.Timeout.Hours() > 2 {
			t.Errorf("command %+v", c)
		}
	}
	if g := s.Gates; g.Coverage < 0 || g.Coverage > 100 || g.Mutation < 0 || g.Mutation > 100 || len(s.Check) == 0 && g.Coverage+g.Mutation > 0 || pushgate.CheckGlobs(g.Reports) != nil {
		t.Errorf("gates %+v", g)
	}
	for name := range s.Env {
		if upper := strings.ToUpper(name); upper == "PATH" || strings.HasPrefix(upper, "GIT_") || strings.ContainsAny(name, "= \x00") {
			t.Errorf("variable %q", name)
		}
	}
	switch s.Plan {
	case settings.PlanTwoStep, settings.PlanOneStep, settings.PlanNone:
	default:
		t.Errorf("plan %q", s.Plan)
	}
}
