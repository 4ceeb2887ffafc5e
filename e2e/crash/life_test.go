package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/server"
)

// patience is the timeout of one step of a life, sufficient for the race detector on a busy machine. A successful life
// never needs it.
const patience = 4 * time.Minute

// timingYAML is errand's section timing: production's, except for waits in real time. All tasks of a life share one VM, and repositories may have
// errand merge.
const timingYAML = `limits: {vms: 1}
repository: {merge: allowed}
timing:
  poll_fast: 60ms
  poll_slow: 60ms
  deliveries: 300ms
  sweep: 10h
  shutdown: 1s
`

// timing is the timing without configuration keys: production's, except for waits in real time.
func timing() server.Timing {
	t := server.DefaultTiming()
	t.PollGap, t.ProgressEvery = 30*time.Millisecond, 300*time.Millisecond
	t.GatherTalk, t.GatherMax = 150*time.Millisecond, time.Second
	t.VMQueue = 10 * time.Millisecond
	t.WritesBurst, t.WritesEvery, t.ObjectsEvery = 2000, time.Millisecond, time.Millisecond
	return t
}

// quicken shortens the timing of an errand in a separate process, whose clock cannot be advanced.
func (s *script) quicken() {
	s.settings += "  gather: 60ms\n"
	t := &s.timing
	t.StatusGap, t.Settle, t.Backoff, t.Recheck, t.JobRetry = 500*time.Millisecond, 0, 150*time.Millisecond, 150*time.Millisecond, 100*time.Millisecond
}

// life is one issue's way from its opening to the merge.
type life struct {
	dir    string
	script *script
	gate   *gate // of the current incarnation
	world  *demo.World
	play   *demo.Play
	log    *os.File
	killed int       // number of kills as a separate process
	waits  time.Time // the time, by errand's clock, until which it last waited
	since  time.Time // the real time when that wait began
}

// begin starts the simulators and the first incarnation.
func begin(ctx context.Context, dir string, s *script) (*life, error) {
	if common.Err != nil {
		return nil, common.Err
	}
	l := &life{dir: dir, script: s}
	rules, files, err := withoutCompiler()
	if err != nil {
		return nil, err
	}
	if l.log, err = os.OpenFile(filepath.Join(dir, "errand.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	l.world, err = demo.New(ctx, demo.Config{
		Dir: dir, BinDir: common.Bin, Agent: common.Agent("simagent"), StandIn: true, Kind: "plain", Script: rules, Files: files, Extra: s.settings, Timing: &s.timing,
		Now: s.clock.now, Key: rsatest.Key(), Log: zerolog.New(l.log).With().Timestamp().Logger(), Version: "crash", Options: l.incarnate,
		Listen: s.listen,
	})
	if err != nil {
		return nil, errors.Join(err, l.log.Close())
	}
	say := func(format string, args ...any) { fmt.Fprintf(l.log, "PERSON: "+format+"\n", args...) }
	l.play = &demo.Play{World: l.world, Say: say, Wait: func(string, time.Duration) {}, Patience: s.patience, Tick: l.tick}
	// An issue that is opened during the first sweep may be received twice, so that the life differs from others.
	err = l.until(ctx, "the first sweep", func() (bool, error) { return s.ended(sweptIssues) >= sweptLooks, nil })
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// incarnate creates the gate of an errand that is about to start.
func (l *life) incarnate(o *server.Options) {
	l.gate = newGate(l.script)
	l.gate.options(o)
}

// tests matches commands that run the compiler, which would slow down every life.
var tests = regexp.MustCompile(`gofmt -l \. ; |go vet \./\.\.\. && go test \./\.\.\.|go vet \./\.\.\.|go test \./\.\.\.`)

// committed is the turn of the demo's implementation to which calls of errand's tools are added here.
const committed = "another word follows.' && git status --short\"]\n"

// said holds these calls.
const said = `        tools:
          - {name: mcp__errand__note, input: {kind: decision, text: The hyphen is written late}}
          - {name: mcp__errand__propose_issue, input: {title: Umlauts, body: They are dropped.}}
`

// withoutCompiler is the demo's model and repository without the compiler.
func withoutCompiler() (rules string, files map[string]string, err error) {
	data, err := os.ReadFile("../../internal/demo/script.yaml")
	if err != nil {
		return "", nil, err
	}
	files = map[string]string{}
	for path, name := range map[string]string{"slug.go": "slug.go", "slug_test.go": "slug_test.go", "go.mod": "go.mod", ".errand.yml": "errand.yml"} {
		text, err := os.ReadFile("../../internal/demo/fixture/" + name + ".txt")
		if err != nil {
			return "", nil, err
		}
		files[path] = tests.ReplaceAllString(string(text), "echo tested")
	}
	rules = tests.ReplaceAllString(string(data), "echo tested")
	if strings.Count(rules, committed) != 1 {
		return "", nil, errors.New("the demo's implementation has changed: the turn to extend is missing")
	}
	return strings.Replace(rules, committed, committed+said, 1), files, nil
}

// tick restarts errand when it has died, and advances the clock when it waits.
func (l *life) tick(ctx context.Context) error {
	for tries := 0; l.gate.dead(); tries++ {
		if tries == 50 {
			return errors.New("errand died at every start")
		}
		fmt.Fprintf(l.log, "DIED: %v\n", l.script.lastHit())
		_ = l.world.Stop() // the dead incarnation's error does not matter
		if err := l.world.Start(ctx); err != nil && !errors.Is(err, errDied) {
			return fmt.Errorf("restart errand: %w", err)
		}
	}
	return l.skip(ctx)
}

// close stops everything; it returns an error for sandboxes that cannot be deleted.
func (l *life) close() error { return errors.Join(l.world.Close(), l.log.Close()) }

// live plays a complete life with its deaths and returns the outcome.
func live(ctx context.Context, t testing.TB, s *script) (o outcome, err error) {
	err = playInWorld(ctx, t, s, func(ctx context.Context, l *life) error {
		o, err = s.plot(ctx, l)
		return err
	})
	return o, err
}

// plot plays the actions of people in a life, until its outcome.
type plot func(context.Context, *life) (outcome, error)

// demoLife is the demo's life, from the opening of an issue to the merge.
func demoLife(ctx context.Context, l *life) (outcome, error) {
	if _, err := l.play.Run(ctx); err != nil {
		return outcome{}, err
	}
	return l.outcome(ctx)
}

// playInWorld runs play in a new world.
func playInWorld(ctx context.Context, t testing.TB, s *script, play func(context.Context, *life) error) error {
	dir, err := os.MkdirTemp("", "errand-life-")
	if err != nil {
		return err
	}
	l, err := begin(ctx, dir, s)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err = play(ctx, l); err != nil {
		err = fmt.Errorf("%w\n%s", err, l.report())
	}
	l.gate.open.Store(true)
	if cerr := l.close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("end the world: %w", cerr))
	}
	if keep := os.Getenv("ERRAND_CRASH_KEEP"); keep == "" {
		err = errors.Join(err, os.RemoveAll(dir))
	} else {
		t.Logf("kept %s", dir)
	}
	return err
}

// until waits for a condition, and keeps errand running and its clock advancing meanwhile.
func (l *life) until(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, l.script.patience)
	defer cancel()
	pause := time.NewTicker(30 * time.Millisecond)
	defer pause.Stop()
	for {
		if err := l.tick(ctx); err != nil {
			return err
		}
		if yes, err := ok(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-pause.C:
		}
	}
}

// report returns the end of errand's log, for a failed life.
func (l *life) report() string {
	data, err := os.ReadFile(l.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
