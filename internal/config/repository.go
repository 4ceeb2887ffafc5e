package config

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state"
)

// RepoFile is a repository's `.errand.yml`. What it leaves out is the operator's.
type RepoFile struct {
	Enabled      *bool           `yaml:"enabled"`
	Plan         *state.PlanMode `yaml:"plan"`
	Base         string          `yaml:"base"`
	Branch       *string         `yaml:"branch"`
	Commit       *string         `yaml:"commit"`
	Title        *string         `yaml:"title"`
	Key          state.KeyRule   `yaml:"key"`
	Draft        *bool           `yaml:"draft"`
	MergeCommits bool            `yaml:"merge_commits"`
	Setup        []RepoCommand   `yaml:"setup"`
	Check        []RepoCommand   `yaml:"check"`
	Protected    []string        `yaml:"protected"`
	Trust        Trust           `yaml:"trust"`
	Limits       RepoLimits      `yaml:"limits"`
}

// RepoCommand is one of the repository's commands: a string, or run with name and timeout.
type RepoCommand struct {
	Name    string        `yaml:"name"`
	Run     string        `yaml:"run"`
	Timeout time.Duration `yaml:"timeout"`
}

// RepoLimits are a repository's own limits, each at most the operator's.
type RepoLimits struct {
	Turns        int           `yaml:"turns"`
	Duration     time.Duration `yaml:"duration"`
	PlanDuration time.Duration `yaml:"plan_duration"`
	Cost         float64       `yaml:"cost"`
	Checks       *int          `yaml:"checks"`
}

// ParseRepo reads a `.errand.yml` over the operator's defaults. The error is for people: it names
// line, key and what to write.
func ParseRepo(data []byte, defaults state.Settings) (state.Settings, error) {
	var f RepoFile
	if err := strict(data, &f); err != nil {
		return defaults, err
	}
	s := defaults
	if f.Enabled != nil {
		s.Enabled = s.Enabled && *f.Enabled
	}
	set(&s.Plan, f.Plan)
	set(&s.Branch, f.Branch)
	set(&s.Commit, f.Commit)
	set(&s.Title, f.Title)
	set(&s.Draft, f.Draft)
	s.Base, s.Key, s.MergeCommits = f.Base, f.Key, f.MergeCommits
	s.Protected = append(append([]string(nil), defaults.Protected...), f.Protected...)
	s.AllowUsers, s.AllowBots = f.Trust.AllowUsers, f.Trust.AllowBots
	s.Setup, s.Check = commands(f.Setup), commands(f.Check)
	f.Limits.apply(&s.Limits)
	return s, f.validate(s)
}

// set overwrites what the repository says.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func commands(list []RepoCommand) []state.Command {
	var out []state.Command
	for _, c := range list {
		if c.Timeout == 0 {
			c.Timeout = 10 * time.Minute
		}
		out = append(out, state.Command{Name: c.Name, Run: c.Run, Timeout: c.Timeout})
	}
	return out
}

// UnmarshalYAML takes a plain string for a command without a name.
func (c *RepoCommand) UnmarshalYAML(unmarshal func(any) error) error {
	var text string
	if err := unmarshal(&text); err == nil {
		c.Run = text
		return nil
	}
	type plain RepoCommand
	return unmarshal((*plain)(c))
}

// apply lowers limits; a repository cannot raise them.
func (l RepoLimits) apply(to *state.Limits) {
	if l.Turns > 0 {
		to.Turns = min(to.Turns, l.Turns)
	}
	if l.Duration > 0 {
		to.Duration = min(to.Duration, l.Duration)
	}
	if l.PlanDuration > 0 {
		to.PlanDuration = min(to.PlanDuration, l.PlanDuration)
	}
	if l.Cost > 0 {
		to.MicroUSD = min(to.MicroUSD, int64(l.Cost*1e6))
	}
	if l.Checks != nil {
		to.Checks = min(to.Checks, max(0, *l.Checks))
	}
}

// validate says everything that is wrong.
func (f RepoFile) validate(s state.Settings) error {
	var errs []error
	if !oneOf(string(s.Plan), "two-step", "one-step", "none") {
		errs = append(errs, fmt.Errorf("plan: %q: write two-step, one-step or none", s.Plan))
	}
	errs = append(errs, validTemplates(s.Branch, s.Commit, s.Title)...)
	if _, err := regexp.Compile(f.Key.Pattern); err != nil {
		errs = append(errs, fmt.Errorf("key.pattern: %w; write a regular expression such as [A-Z]+-[0-9]+", err))
	}
	if f.Key.Required && f.Key.Pattern == "" {
		errs = append(errs, errors.New("key.required: a pattern is needed too, such as key.pattern: '[A-Z]+-[0-9]+'"))
	}
	if err := pushgate.CheckGlobs(f.Protected); err != nil {
		errs = append(errs, fmt.Errorf("protected: %w", err))
	}
	for name, list := range map[string][]RepoCommand{"setup": f.Setup, "check": f.Check} {
		for i, c := range list {
			if c.Run == "" {
				errs = append(errs, fmt.Errorf("%s[%d]: write the command, such as `go test ./...`", name, i))
			}
		}
	}
	return errors.Join(errs...)
}

// validTemplates checks the three templates.
func validTemplates(branch, commit, title string) []error {
	var errs []error
	for key, tmpl := range map[string]string{"branch": branch, "commit": commit, "title": title} {
		if _, err := comment.Expand(tmpl, comment.Vars{Number: 1, Slug: "x", Task: "x", Key: "K-1"}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return errs
}
