package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// invariants lists violations of the invariants of all stories.
func (s *story) invariants() []string {
	if s.child != nil {
		return []string{"the story left a child server running"}
	}
	if err := s.settle(); err != nil {
		return []string{err.Error()}
	}
	var bad []string
	for _, look := range []func() []string{s.storeSound, s.endedAreDone, s.boxesOwned, s.onePull, s.commentsDiffer, s.noSecrets, s.noErrors} {
		bad = append(bad, look()...)
	}
	return bad
}

func (s *story) storeSound() []string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	bad, err := s.w.Server.Store().Check(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	return bad
}

// endedAreDone: an ended task has no VM, no run, and no job except those scheduled for much later.
func (s *story) endedAreDone() []string {
	var bad []string
	for _, t := range s.tasks() {
		if !t.Ended() {
			continue
		}
		if t.VM != nil {
			bad = append(bad, fmt.Sprintf("ended task %s has VM %s", t.Key, t.VM.Name))
		}
		if t.Run != nil {
			bad = append(bad, fmt.Sprintf("ended task %s has run %s (%s)", t.Key, t.Run.ID, t.Run.State))
		}
		for _, j := range s.jobs(t.Key) {
			if j.Kind != state.JobDue {
				bad = append(bad, fmt.Sprintf("ended task %s has job %s (%s)", t.Key, j.Kind, j.Key))
			}
		}
	}
	return bad
}

// boxesOwned: every sandbox belongs to a task.
func (s *story) boxesOwned() []string {
	if s.w.Cloud != nil {
		return s.serversOwned()
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, "data", "local", "boxes"))
	if err != nil {
		return []string{err.Error()}
	}
	owned := map[string]bool{}
	for _, t := range s.tasks() {
		if t.VM != nil {
			owned[t.VM.Name] = true
		}
	}
	var bad []string
	for _, e := range entries {
		if rec := filepath.Join(s.boxDir(e.Name()), "box.json"); !owned[e.Name()] && exists(rec) && !exists(filepath.Join(s.boxDir(e.Name()), "end.json")) {
			bad = append(bad, "box "+e.Name()+" belongs to no task")
		}
	}
	return bad
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// onePull: no branch by errand has two pull requests.
func (s *story) onePull() []string {
	heads := map[string]int{}
	var bad []string
	for _, i := range s.repo().Issues {
		if i.Pull != nil && i.Author == s.w.GitHub.App().BotLogin {
			if other := heads[i.Pull.Head]; other != 0 {
				bad = append(bad, fmt.Sprintf("pull requests #%d and #%d both have branch %s", other, i.Number, i.Pull.Head))
			}
			heads[i.Pull.Head] = i.Number
		}
	}
	return bad
}

// commentsDiffer: no marker and no text occurs twice, and a status comment is short.
func (s *story) commentsDiffer() []string {
	var bad []string
	for _, n := range numbers(s.repo()) {
		markers, bodies := map[string]bool{}, map[string]bool{}
		for _, c := range s.byBot(n) {
			if s.moved[c.ID] { // of another task
				continue
			}
			mark := markerLine.FindString(c.Body)
			body := strings.TrimSpace(strings.TrimSuffix(c.Body, mark))
			if mark == "" && !slices.ContainsFunc(c.Edits, func(e simgithub.Edit) bool { return e.Editor != c.Author }) {
				bad = append(bad, fmt.Sprintf("a comment on #%d has no marker: %.80q", n, body))
			}
			if markers[mark] {
				bad = append(bad, fmt.Sprintf("two comments on #%d have the marker %s", n, mark))
			}
			life, _, _ := strings.Cut(mark, ".")                                                                   // repeated after a restart of the task
			if bodies[life+body] && !strings.Contains(mark, ".reply-") && !strings.Contains(mark, ".pr-closed-") { // what people repeat is answered again
				bad = append(bad, fmt.Sprintf("two comments on #%d have the same text: %.200q", n, body))
			}
			markers[mark], bodies[life+body] = true, true
			if lines := strings.Count(strings.TrimSpace(c.Body), "\n") + 1; isStatus(c.Body) && lines > 40 {
				bad = append(bad, fmt.Sprintf("the status comment on #%d has %d lines", n, lines))
			}
		}
	}
	return bad
}

var installationToken = regexp.MustCompile(`\bghs_[A-Za-z0-9_]{16,}`)

// noSecrets: errand's secrets are not in a comment, a log, a transcript, or on a VM.
func (s *story) noSecrets() []string {
	app := s.w.GitHub.App()
	pem := strings.Split(string(app.PEM), "\n")
	secrets := []string{demo.ModelKey, demo.AdminToken, app.WebhookSecret, pem[len(pem)/2]}
	var bad []string
	look := func(where, text string) {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				bad = append(bad, fmt.Sprintf("a secret (%.6s…) is in %s", secret, where))
			}
		}
		if m := installationToken.FindString(text); m != "" {
			bad = append(bad, fmt.Sprintf("a token (%.8s…) is in %s", m, where))
		}
	}
	for n, i := range s.repo().Issues {
		look(fmt.Sprintf("#%d", n), i.Body)
		for _, c := range s.byBot(n) {
			look(fmt.Sprintf("comment %d", c.ID), c.Body)
		}
	}
	for _, l := range s.logLines() {
		if strings.Contains(l, `"part":"errand"`) {
			look("the log", l)
		}
	}
	for _, t := range s.transcripts() {
		look("a transcript", t)
	}
	err := filepath.WalkDir(filepath.Join(s.dir, "data", "local", "boxes"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // files on a VM may disappear
		}
		if info, err := d.Info(); err == nil && info.Size() < 1<<20 {
			if data, err := os.ReadFile(path); err == nil && !bytes.Contains(data, []byte{0}) {
				look("VM file "+path, string(data))
			}
		}
		return nil
	})
	if err != nil {
		bad = append(bad, err.Error())
	}
	return bad
}

// noErrors: no error was logged, unless the story causes some.
func (s *story) noErrors() []string {
	if s.quiet {
		return nil
	}
	var bad []string
	for _, l := range s.logLines() {
		if strings.Contains(l, `"level":"error"`) || strings.Contains(l, `"level":"panic"`) {
			bad = append(bad, "logged: "+l)
		}
	}
	return bad
}

// everyTask returns the phases of all tasks if one of them is not the expected one.
func everyTask(o seen, want string) (string, bool) {
	tasks := o.s.tasks()
	var other []string
	for _, t := range tasks {
		if string(t.Phase) != want {
			other = append(other, fmt.Sprintf("%s: %s", t.Key, t.Phase))
		}
	}
	return strings.Join(other, ", "), len(tasks) > 0 && len(other) == 0
}
