package intake

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/internal/shellrules"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// branch finds the base, its newest commit, the ticket key and a name for the branch.
func (s *Steps) branch(ctx context.Context, w *step.Attempt, st *event.Start, v trust.View, out forge.IssueSnapshot) error {
	t := w.Task
	b := state.Branch{Base: t.Trigger.Base}
	if b.Base == "" {
		b.Base = st.Settings.Base
	}
	if b.Base == "" {
		b.Base = t.Repo.DefaultBranch
	}
	err := error(nil)
	if b.Base == out.DefaultBranch {
		b.BaseSHA = out.Head
	} else {
		b.BaseSHA, err = s.GitHub.Head(ctx, w.Repo, b.Base)
	}
	if errors.Is(err, forge.ErrNotFound) {
		return &step.Problem{Reason: fmt.Sprintf("The base branch `%s` does not exist.", b.Base), Hint: "Name another one with `base: NAME` in the issue or in `.errand.yml`, then comment `retry`.", Class: state.ClassConfig, Permanent: true, Err: err}
	} else if err != nil {
		return err
	}
	b.Name, err = naming.Expand(st.Settings.Branch, step.Vars(t, s.ticket(t, st.Settings, v), s.Redact))
	if err != nil {
		return &step.Problem{Reason: "The branch template cannot be used.", Hint: err.Error(), Class: state.ClassConfig, Permanent: true, Err: err}
	}
	if t.Gen > 1 { // an earlier life may have left its branch
		b.Name = fmt.Sprintf("%s-%d", b.Name, t.Gen)
	}
	if !naming.ValidBranch(b.Name) {
		return &step.Problem{Reason: fmt.Sprintf("The branch template gives `%s`, which is not a valid branch name in git.", b.Name), Hint: "Change `branch:` in `.errand.yml`, then comment `retry`.", Class: state.ClassConfig, Permanent: true}
	}
	if clean, _ := s.Redact.Redact(b.Name); clean != b.Name { // values that are none may make one together, or in lower case
		return &step.Problem{Reason: "The branch template gives a name that contains a secret.", Hint: "Change the issue's title or `branch:` in `.errand.yml`, then comment `retry`.", Class: state.ClassConfig, Permanent: true}
	}
	st.Branch = b
	return nil
}

// ticket finds the repository's ticket key, in a person's command or in the visible discussion. If the
// repository has a pattern, only text that matches it is a key.
func (s *Steps) ticket(t *state.Task, repoSettings settings.Settings, v trust.View) string {
	if repoSettings.Key.Pattern == "" {
		return t.Ticket
	}
	re, err := regexp.Compile(repoSettings.Key.Pattern)
	if err != nil {
		return "" // the settings were validated when they were read
	}
	texts := []string{t.Ticket, v.Title, v.Body}
	for _, c := range v.Comments {
		texts = append(texts, c.Body)
	}
	for _, text := range texts {
		if key := re.FindString(text); key != "" {
			return key
		}
	}
	return ""
}

// base reads the commit at which the work begins: its guidance for agents, and the build files from which the commands
// that agents may call are detected, unless the settings list them.
func (s *Steps) base(ctx context.Context, w *step.Attempt, st *event.Start) error {
	if st.Branch.BaseSHA == "" {
		return nil
	}
	if len(st.Settings.Guidance) > 0 {
		texts, err := s.GitHub.CommitFiles(ctx, w.Repo, st.Branch.BaseSHA, st.Settings.Guidance)
		if err != nil {
			return fmt.Errorf("read the base branch's instructions for agents: %w", err)
		}
		st.Context.Guidance = s.guidance(st.Settings.Guidance, texts)
	}
	if !st.Settings.Shell.Set {
		paths, err := s.GitHub.FilePaths(ctx, w.Repo, st.Branch.BaseSHA)
		if err != nil {
			return fmt.Errorf("list the base branch's build files: %w", err)
		}
		st.Settings.Shell.Commands = shellrules.DetectCommands(paths, step.Commands(st.Settings))
	}
	return nil
}

// How much of one file, and of all together, agents are given, in bytes.
const (
	maxGuidanceFile = 24 << 10
	maxGuidanceAll  = 48 << 10
)

// guidance returns the contents of the guidance files on the base branch, in the order of their paths. People who may
// change that branch are trusted, but hidden content and secrets are removed all the same. A file that repeats another
// one, or only names it (as a link does), is left out.
func (s *Steps) guidance(paths []string, texts map[string]string) []state.Guidance {
	var list []state.Guidance
	left := maxGuidanceAll
	seen := map[string]bool{}
	for _, p := range paths {
		text := strings.TrimSpace(step.Shown(texts[p], s.Redact))
		if text == "" || seen[text] || pointsTo(text, texts) {
			continue
		}
		seen[text] = true
		g := state.Guidance{Path: p, Text: text}
		if most := min(left, maxGuidanceFile); len(text) > most {
			g.Text, g.Cut = cutBytes(text, most), true
		}
		left -= len(g.Text)
		list = append(list, g)
	}
	return list
}

// pointsTo reports whether a text is no more than the name of another file that was read.
func pointsTo(text string, texts map[string]string) bool {
	_, is := texts[strings.TrimPrefix(strings.TrimPrefix(text, "@"), "./")]
	return is
}

// cutBytes returns the beginning of a text, at most that many bytes, whole characters.
func cutBytes(s string, most int) string {
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
