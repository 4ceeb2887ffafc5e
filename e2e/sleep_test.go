package e2e

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/state"
)

// packing holds the packing of work back while a story wants that.
type packing struct {
	mu   sync.Mutex
	held chan struct{} // nil: nothing is held back
	busy int           // how many are held back
}

// Pack waits until the story lets it go on.
func (r hostileRunner) Pack(ctx context.Context, vm string, spec pack.Spec, to io.Writer) (pack.Manifest, error) {
	p := &r.h.packing
	p.mu.Lock()
	held := p.held
	if held != nil {
		p.busy++
	}
	p.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
		}
		p.mu.Lock()
		p.busy--
		p.mu.Unlock()
	}
	return r.Runner.Pack(ctx, vm, spec, to)
}

// sleepCmd bends sleep: sleep hold keeps packing waiting until sleep release, or until sleep
// hold is said again, which holds the next one; sleep damage changes a byte in
// the middle of every archive.
func sleepCmd(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	p := &s.hostile.packing
	switch args[0] {
	case "hold", "release":
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.held != nil {
			close(p.held)
			p.held = nil
		}
		if args[0] == "hold" {
			p.held = make(chan struct{})
		}
	case "damage":
		list, err := s.archives()
		ts.Check(err)
		for _, path := range list {
			data, err := os.ReadFile(path)
			ts.Check(err)
			data[len(data)/2] ^= 0x55
			ts.Check(os.WriteFile(path, data, 0o600))
		}
	default:
		ts.Fatalf("sleep: unknown %q", args[0])
	}
}

// packingNow reports whether packing is held back.
func packingNow(o seen, want string) (string, bool) {
	p := &o.s.hostile.packing
	p.mu.Lock()
	defer p.mu.Unlock()
	return yesNo(p.busy > 0, want)
}

// asleep is what the task's work was put away as while it has no VM, kept while it has one, or none.
func asleep(t *state.Task) string {
	switch {
	case t.Asleep == nil:
		return "none"
	case t.VM != nil:
		return "kept"
	}
	return string(t.Asleep.Mode)
}

// archives counts the files of work that was put away.
func archives(o seen, want string) (string, bool) {
	list, err := o.s.archives()
	if err != nil {
		return err.Error(), false
	}
	return count(len(list), want)
}

func (s *story) archives() ([]string, error) {
	return filepath.Glob(filepath.Join(s.dir, "data", "sleeps", "*.zst"))
}

// queued=KIND wants a job of that kind to wait, or to be under way.
func queued(o seen, want string) (string, bool) {
	if o.t == nil {
		return "no task", false
	}
	var kinds []string
	for _, j := range o.s.jobs(o.t.Key) {
		kinds = append(kinds, string(j.Kind))
	}
	return strings.Join(kinds, ", "), slices.Contains(kinds, want)
}
