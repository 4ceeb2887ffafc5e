package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// TestCatchUp: after a restoration, and only then, errand reads from GitHub what happened since the backup before any job runs: webhooks
// first, then the state of tasks, then reactions. It tries again while GitHub cannot be read, but does not wait forever.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	const all = "fetch apply compare apply poll"
	for name, test := range map[string]struct {
		restored bool
		fails    int   // attempts
		with     error // instead of one that passes
		stopped  bool
		want     string
		again    string // after a restart
	}{
		"in a store of its own": {},
		"after a restoration":   {restored: true, want: all},
		"GitHub fails twice":    {restored: true, fails: 2, want: all + " " + all + " " + all},
		"GitHub refuses":        {restored: true, fails: 9, with: &forge.Error{Class: forge.ClassPermanent, Err: forge.ErrNotFound}, want: all + " " + all + " " + all},
		"it refuses a task":     {restored: true, fails: 9, with: fmt.Errorf("%w: 1 could not", watch.ErrRefused), want: all + " " + all + " " + all},
		"errand is stopped":     {restored: true, stopped: true, want: all, again: all},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			s := &Server{opts: Options{Timing: &Timing{CatchUp: time.Minute / 10}}}
			open := func() {
				if s.store, err = store.Open(t.Context(), db, store.Options{}); err != nil {
					t.Fatal(err)
				}
			}
			open()
			if test.restored {
				if err := s.store.MarkRestored(t.Context(), time.Now().Add(-time.Hour), store.Action{ID: "1", Command: "restore"}); err != nil {
					t.Fatal(err)
				}
			}
			run := func(ctx context.Context, stop func()) string {
				var did []string
				step := func(what string) func(context.Context) error {
					return func(ctx context.Context) error {
						did = append(did, what)
						if what == "poll" && test.stopped {
							stop()
						}
						if what == "compare" && strings.Count(strings.Join(did, " "), what) <= test.fails {
							return cmp.Or(test.with, errors.New("GitHub does not answer"))
						}
						return ctx.Err()
					}
				}
				steps := catchUpSteps{fetch: step("fetch"), apply: step("apply"), compare: step("compare"), poll: step("poll")}
				if err := s.catchUp(ctx, steps); err != nil {
					t.Fatal(err)
				}
				return strings.Join(did, " ")
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if got := run(ctx, stop); got != test.want {
				t.Errorf("got steps %q, want %q", got, test.want)
			}
			open()
			test.stopped, test.fails = false, 0
			if got := run(t.Context(), nil); got != test.again {
				t.Errorf("after a restart: got steps %q, want %q", got, test.again)
			}
		})
	}
}

// TestShutdownDuringStart: an errand that is stopped before it works has not failed, whether its store is a copy from a backup or not.
func TestShutdownDuringStart(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]bool{"restored": true, "in a store of its own": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			s := &Server{opts: Options{Timing: &Timing{CatchUp: time.Minute}}}
			if s.store, err = store.Open(t.Context(), db, store.Options{}); err != nil {
				t.Fatal(err)
			}
			if restored {
				if err := s.store.MarkRestored(t.Context(), time.Now().Add(-time.Hour), store.Action{ID: "1", Command: "restore"}); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			stop()
			if err := s.afterRestoration(ctx, nil, catchUpSteps{}); err != nil {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// TestCatchUpEnds: an errand that cannot read GitHub for long begins to work.
func TestCatchUpEnds(t *testing.T) {
	t.Parallel()
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Server{opts: Options{Timing: &Timing{CatchUp: 60 * time.Millisecond}}}
	if s.store, err = store.Open(t.Context(), db, store.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.store.MarkRestored(t.Context(), time.Now().Add(-time.Hour), store.Action{ID: "1", Command: "restore"}); err != nil {
		t.Fatal(err)
	}
	fails := func(context.Context) error { return errors.New("GitHub does not answer") }
	if err := s.catchUp(t.Context(), catchUpSteps{fails, fails, fails, fails}); err != nil || s.store.Restored().CaughtUp.IsZero() {
		t.Errorf("got error %v, caught up at %v", err, s.store.Restored().CaughtUp)
	}
}
