package config_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state/settings"
)

// operator is what the operator set for every repository.
func operator() settings.Settings {
	c := config.Default()
	c.Limits.Turns = 30
	return c.Settings()
}

// TestRepositoriesLimitTurnsThatTheOperatorDoesNot: the default of limits.turns, no limit, can be lowered.
func TestRepositoriesLimitTurnsThatTheOperatorDoesNot(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"limits: {turns: 40}\n": 40, "limits: {cost: 1}\n": 0} {
		got, err := config.ParseRepo([]byte(text), config.Default().Settings(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Limits.Turns != want {
			t.Errorf("%q: got %d turns, want %d", text, got.Limits.Turns, want)
		}
	}
}

func TestParseRepo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want func(*settings.Settings)
	}{
		"empty":     {"", func(*settings.Settings) {}},
		"a comment": {"# nothing yet\n", func(*settings.Settings) {}},
		"everything": {`enabled: true
plan: one-step
base: develop
branch: "{key}/{slug}"
commit: "{key}: {task}"
title: "[{key}] {task}"
key: {pattern: '[A-Z]+-[0-9]+', required: true}
draft: until-green
merge_commits: true
resolve: true
comments: {money: never}
trailers: true
signoff: true
publish: after-approval
setup: [go mod download]
check:
  - go vet ./...
  - name: tests
    run: go test ./...
    timeout: 20m
  - {run: make cover, before_pr: true}
gates: {coverage: 85, mutation: 70, reports: [build/**/*.xml]}
gate: {protected: [schema/**], unprotected: [AGENTS.md], secrets_allowed_in: [], max_paths: 9, max_bytes: 99}
trust: {allow_users: [ada], allow_bots: ["renovate[bot]"]}
limits: {turns: 10, duration: 1h, plan_duration: 5m, cost: 2, checks: 1}
vm: {min_vcpu: 8, min_memory: 16, min_disk: 100, sleep: snapshot}
keep: [node_modules, ~/.cache/go-build]
`, func(s *settings.Settings) {
			s.Plan, s.Base, s.Branch, s.Commit, s.Title = settings.PlanOneStep, "develop", "{key}/{slug}", "{key}: {task}", "[{key}] {task}"
			s.Key = settings.KeyRule{Pattern: "[A-Z]+-[0-9]+", Required: true}
			s.Draft, s.MergeCommits, s.Resolve, s.Publish = settings.DraftUntilGreen, true, true, settings.PublishAfterApproval
			s.Trailers, s.SignOff, s.Comments.Money = true, true, settings.MoneyNever
			s.Setup = []settings.Command{{Run: "go mod download", Timeout: 10 * time.Minute}}
			s.Check = []settings.Command{{Run: "go vet ./...", Timeout: 10 * time.Minute}, {Name: "tests", Run: "go test ./...", Timeout: 20 * time.Minute}, {Run: "make cover", Timeout: 10 * time.Minute, BeforePR: true}}
			s.Gates = settings.Gates{Coverage: 85, Mutation: 70, Reports: []string{"build/**/*.xml"}}
			s.Gate = settings.Gate{Protected: []string{"schema/**"}, Unprotected: []string{"AGENTS.md"}, SecretsAllowedIn: []string{}, MaxPaths: 9, MaxBytes: 99}
			s.AllowUsers, s.AllowBots = []string{"ada"}, []string{"renovate[bot]"}
			s.VM = settings.VM{MinVCPU: 8, MinMemoryMB: 16384, MinDiskGB: 100, Sleep: settings.SleepSnapshot}
			s.Keep = []string{"node_modules", "~/.cache/go-build"}
			s.Limits.Turns, s.Limits.Duration, s.Limits.PlanDuration, s.Limits.MicroUSD, s.Limits.Checks = 10, time.Hour, 5*time.Minute, 2_000_000, 1
		}},
		"a draft, as before":      {"draft: true\n", func(s *settings.Settings) { s.Draft = settings.DraftAlways }},
		"no draft, as before":     {"draft: false\n", func(s *settings.Settings) { s.Draft = settings.DraftNever }},
		"limits cannot be raised": {"limits: {turns: 1000, duration: 30d, plan_duration: 1d, cost: 99999999999999, checks: 99}\n", func(*settings.Settings) {}},
		"switched off":            {"enabled: false\n", func(s *settings.Settings) { s.Enabled = false }},
		"no checks after failing": {"limits: {checks: 0}\n", func(s *settings.Settings) { s.Limits.Checks = 0 }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := operator()
			tt.want(&want)
			got, err := config.ParseRepo([]byte(tt.text), operator(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRepositoryCannotEnableWhatTheOperatorDisabled(t *testing.T) {
	t.Parallel()
	off := operator()
	off.Enabled = false
	if s, err := config.ParseRepo([]byte("enabled: true\n"), off, nil); err != nil || s.Enabled {
		t.Errorf("enabled = %v, %v", s.Enabled, err)
	}
}

func TestRepositoryCannotDisableApprovalOfChanges(t *testing.T) {
	t.Parallel()
	for text, mode := range map[string]settings.PublishMode{"publish: at-once\n": settings.PublishAtOnce, "": settings.PublishAtOnce, "publish: after-approval\n": settings.PublishAfterApproval} {
		for _, operators := range []settings.PublishMode{settings.PublishAtOnce, settings.PublishAfterApproval} {
			defaults := operator()
			defaults.Publish = operators
			want := mode
			if operators == settings.PublishAfterApproval {
				want = operators
			}
			if s, err := config.ParseRepo([]byte(text), defaults, nil); err != nil || s.Publish != want {
				t.Errorf("%q over %s: %s, %v", text, operators, s.Publish, err)
			}
		}
	}
}

// TestOperatorDecidesWhoMerges: without the operator's permission errand does not merge, and knows that the repository wants it.
func TestOperatorDecidesWhoMerges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ operator, repository, want settings.MergeMode }{
		{settings.MergeAllowed, settings.MergeWhenApproved, settings.MergeWhenApproved}, {settings.MergeAllowed, "", settings.MergeNever},
		{settings.MergeWhenApproved, settings.MergeNever, settings.MergeNever}, {settings.MergeWhenApproved, "", settings.MergeWhenApproved},
		{settings.MergeNever, settings.MergeNever, settings.MergeNever}, {settings.MergeNever, settings.MergeWhenApproved, settings.MergeDenied},
		{settings.MergeAllowed, settings.MergeAllowed, ""}, {settings.MergeAllowed, "sometimes", ""},
	} {
		defaults, text := operator(), ""
		defaults.Merge = tt.operator
		if tt.repository != "" {
			text = "merge: " + string(tt.repository) + "\n"
		}
		s, err := config.ParseRepo([]byte(text), defaults, nil)
		if tt.want == "" {
			if err == nil || !strings.Contains(err.Error(), "merge: ") {
				t.Errorf("%q over %s: got error %v", text, tt.operator, err)
			}
			continue
		}
		if err != nil || s.Merge != tt.want {
			t.Errorf("%q over %s: got %q, %v, want %q", text, tt.operator, s.Merge, err, tt.want)
		}
	}
}

func TestOperatorCanHideCosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ operator, repository, want settings.MoneyMode }{
		{settings.MoneyPrivate, "", settings.MoneyPrivate}, {settings.MoneyPrivate, settings.MoneyAlways, settings.MoneyAlways},
		{settings.MoneyAlways, settings.MoneyNever, settings.MoneyNever}, {settings.MoneyNever, settings.MoneyAlways, settings.MoneyNever},
		{settings.MoneyNever, "", settings.MoneyNever}, {settings.MoneyAlways, "", settings.MoneyAlways},
	} {
		defaults, text := operator(), ""
		defaults.Comments.Money = tt.operator
		if tt.repository != "" {
			text = "comments: {money: " + string(tt.repository) + "}\n"
		}
		if s, err := config.ParseRepo([]byte(text), defaults, nil); err != nil || s.Comments.Money != tt.want {
			t.Errorf("%q over %s: got %s, %v", text, tt.operator, s.Comments.Money, err)
		}
	}
}

func TestParseRepoReportsProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"unknown key":           {"plan: none\ncheks:\n- go test\n", "line 2: cheks: this key is unknown; did you mean check?"},
		"a plain command":       {"check: go test ./...\n", "line 1: check: write a list, such as [a, b]"},
		"a number":              {"check: [5]\n", "line 1: check[0]: write a command such as go test ./..., or a mapping with run, name, timeout and before_pr"},
		"a command's key":       {"setup:\n- run: make\n  time: 5m\n", "line 3: setup[0].time: this key is unknown; "},
		"no command":            {"setup:\n- name: x\n", "line 2: setup[0]: write the command, such as go test ./..."},
		"too long":              {"setup:\n- run: x\n  timeout: 3h\n", "line 3: setup[0].timeout: at most 2h"},
		"too many":              {"setup: [" + strings.Repeat("a,", 20) + "a]\n", "line 1: setup: 21 commands are too many; write at most 20"},
		"plan":                  {"plan: 2\n", "line 1: plan: write a text"},
		"plan mode":             {"plan: both\n", `line 1: plan: "both": write two-step, one-step or none`},
		"publish mode":          {"publish: later\n", `line 1: publish: "later": write at-once or after-approval`},
		"pattern":               {"key: {pattern: '['}\n", "line 1: key.pattern: error parsing regexp"},
		"required":              {"key:\n  required: true\n", "line 2: key.required: a pattern is needed too"},
		"template":              {"branch: '{issue}'\n", "line 1: branch: expand template"},
		"where costs are shown": {"comments: {money: sometimes}\n", `line 1: comments.money: "sometimes": write private, always or never`},
		"nobody to sign off":    {"plan: none\nsignoff: true\n", "line 2: signoff: needs a plan that people approve; write plan: one-step or two-step"},
		"an old key":            {"protected: ['deploy/**']\n", "line 1: protected: this key was replaced; write gate.protected instead"},
		"a lifted rule":         {"gate: {protected: ['!deploy/**']}\n", `line 1: gate.protected[0]: glob "!deploy/**" begins with an exclamation mark; exceptions are written in gate.unprotected`},
		"a bad pattern":         {"gate:\n  unprotected:\n  - ok/**\n  - '['\n", `line 4: gate.unprotected[1]: glob "[" is not valid; write a pattern`},
		"more than all":         {"check: [make]\ngates:\n  coverage: 101\n", "line 3: gates.coverage: write a percentage from 0 to 100"},
		"less than none":        {"check: [make]\ngates:\n  mutation: -1\n", "line 3: gates.mutation: write a percentage from 0 to 100"},
		"nothing to measure":    {"gates: {coverage: 85}\n", "line 1: gates: a command in check has to write the reports"},
		"a report outside":      {"check: [make]\ngates: {reports: [ok, a/../../x]}\n", "line 2: gates.reports[1]: write a path within the checkout"},
		"a bad report":          {"check: [make]\ngates: {reports: ['[']}\n", `line 2: gates.reports[0]: "[" is not a pattern such as build/**/jacoco.xml`},
		"too many reports":      {"check: [make]\ngates: {reports: [" + strings.Repeat("a,", 50) + "a]}\n", "line 2: gates.reports: 51 patterns are too many; write at most 50"},
		"setup before all":      {"setup:\n- run: make\n  before_pr: true\n", "line 3: setup[0].before_pr: this is for commands of check"},
		"negative paths":        {"gate: {max_paths: -1}\n", "line 1: gate.max_paths: must be greater than zero"},
		"negative turns":        {"limits:\n  turns: -1\n", "line 2: limits.turns: must be greater than zero"},
		"infinite cost":         {"limits:\n  cost: .inf\n", "line 2: limits.cost: write a number"},
		"large":                 {"# " + strings.Repeat("x", 70<<10), "the file is larger than 64 KiB"},
		"operator's key":        {"admin: {token: env:HOME}\n", "line 1: admin: this key is unknown; the keys are enabled, plan, "},
		"sleep":                 {"vm: {sleep: deep}\n", `line 1: vm.sleep: "deep": write archive or snapshot`},
		"memory":                {"vm:\n  min_memory: -8\n", "line 2: vm.min_memory: write a number from 0 to 10000"},
		"keep outside":          {"keep: [ok, ../x]\n", `line 1: keep[1]: "../x": write a folder of the checkout`},
		"keep all":              {"keep: [~/]\n", `line 1: keep[0]: "~/": write a folder`},
		"an alias":              {"base: *x\n", "line 1: base: anchors, aliases and tags are not supported"},
		"a text":                {"hello\n", "line 1: write a mapping with the keys enabled, plan, "},
		"control characters":    {"\"a\\u0000\\nb\": 1\n", "line 1: a  b: this key is unknown; "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config.ParseRepo([]byte(tt.text), operator(), nil)
			var bad *config.Invalid
			if !errors.As(err, &bad) {
				t.Fatalf("error = %v, want an Invalid", err)
			}
			if len(bad.Problems) != 1 || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("says\n%s\nwant\n%s", err, tt.want)
			}
			if diff := cmp.Diff(operator(), got); diff != "" {
				t.Errorf("an invalid file changes settings (-want +got):\n%s", diff)
			}
		})
	}
}
