package realcli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// patience is the timeout of one step of a life on a busy machine.
const patience = 8 * time.Minute

// life is a world that a real agent program works in.
type life struct {
	*demo.World
	t   *testing.T
	dir string
	log string
}

// startLife starts a world for an agent program, with a model that follows the script.
func startLife(t *testing.T, agent, script string, change func(*demo.Config)) *life {
	t.Helper()
	l := &life{t: t, dir: t.TempDir()}
	l.log = filepath.Join(l.dir, "errand.log")
	log, err := os.Create(l.log)
	check(t, err)
	t.Cleanup(func() { check(t, log.Close()) })
	cfg := demo.Config{
		Dir: l.dir, BinDir: common.Bin, Agent: []string{agent}, Fast: true, Kind: local.KindBwrap, Key: rsatest.Key(),
		Log: zerolog.New(log).With().Timestamp().Logger(), Version: "realcli",
	}
	if change != nil {
		change(&cfg)
	}
	l.World, err = demo.New(t.Context(), cfg)
	check(t, err)
	t.Cleanup(func() {
		check(t, l.World.Close())
		if t.Failed() {
			t.Logf("warnings and the end of errand's log:\n%s", l.logExcerpt(40))
		}
	})
	l.setScript(script)
	return l
}

// setScript makes the model play a file of testdata, in which PROBE is replaced by a command that tests the network.
func (l *life) setScript(name string) {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	check(l.t, err)
	probe, err := os.ReadFile(filepath.Join("testdata", "probe.sh"))
	check(l.t, err)
	cfg, err := config.Load(l.ConfigFile(), os.LookupEnv)
	check(l.t, err)
	for _, m := range cfg.Models {
		probe = bytes.ReplaceAll(probe, []byte("MODEL_ADDRESS"), []byte(devTCPAddress(m.URL)))
	}
	probe = bytes.ReplaceAll(probe, []byte("FORGE_ADDRESS"), []byte(devTCPAddress(l.GitHub.BaseURL())))
	lines := strings.Split(strings.TrimSpace(string(probe)), "\n")
	out := strings.ReplaceAll(string(text), "PROBE", strings.Join(lines, "\n            "))
	script, err := simmodel.ParseScript([]byte(out))
	check(l.t, err)
	check(l.t, l.Model.SetScript(script))
}

// devTCPAddress returns the address of a URL in bash's form below /dev/tcp.
func devTCPAddress(url string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	return strings.Replace(host, ":", "/", 1)
}

// logExcerpt returns the warnings, the errors and the last lines of errand's log.
func (l *life) logExcerpt(last int) string {
	text, _ := os.ReadFile(l.log) // best effort, after a failure
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	from := max(0, len(all)-last)
	loud := slices.DeleteFunc(slices.Clone(all[:from]), func(line string) bool {
		return !strings.Contains(line, `"level":"warn"`) && !strings.Contains(line, `"level":"error"`)
	})
	return strings.Join(append(loud, all[from:]...), "\n")
}

// play takes the demo's first issue through its complete life.
func (l *life) play() demo.Result {
	l.t.Helper()
	p := &demo.Play{World: l.World, Say: l.t.Logf, Wait: func(string, time.Duration) {}, Patience: patience}
	res, err := p.Run(l.t.Context())
	check(l.t, err)
	return res
}

// task returns the task of an issue, or nil if there is none yet.
func (l *life) task(issue int) *state.Task {
	l.t.Helper()
	r, err := l.GitHub.As(demo.Maintainer).Repo(demo.Full)
	check(l.t, err)
	task, err := l.Server.Store().Task(l.t.Context(), state.TaskKey{Repo: r.ID, Issue: issue})
	check(l.t, err)
	return task
}

// until waits for a state of the task of an issue.
func (l *life) until(issue int, what string, ok func(*state.Task) bool) *state.Task {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		task := l.task(issue)
		if task != nil && ok(task) {
			return task
		}
		if task != nil && (task.Phase == state.PhaseFailed || task.Phase == state.PhaseCancelled) {
			l.t.Fatalf("waiting for %s: the task is %s: %s", what, task.Phase, task.End.Reason)
		}
		select {
		case <-ctx.Done():
			l.t.Fatalf("waiting for %s: timeout after %s", what, patience)
		case <-tick.C:
		}
	}
}

// botComments returns all comments by the bot on an issue or pull request, including threads.
func (l *life) botComments(number int) string {
	l.t.Helper()
	i, err := l.GitHub.As(demo.Maintainer).Issue(demo.Full, number)
	check(l.t, err)
	bot, all := l.GitHub.App().BotLogin, []string{}
	for _, c := range i.Comments {
		if c.Author == bot {
			all = append(all, c.Body)
		}
	}
	if i.Pull != nil {
		all = append(all, i.Body)
		for _, thread := range i.Pull.Threads {
			for _, c := range thread.Comments {
				if c.Author == bot {
					all = append(all, c.Body)
				}
			}
		}
	}
	return strings.Join(all, "\n\n")
}
