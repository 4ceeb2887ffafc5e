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

// packing delays the packing of work while a story requests it.
type packing struct {
	mu   sync.Mutex
	held chan struct{} // nil: no delay
	busy int           // number of delayed calls
}

// Pack waits until the story releases it.
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

// sleepCmd disturbs suspension: sleep hold delays packing until sleep release, or until the next sleep hold, which
// delays the next packing; sleep damage changes a byte in the middle of every archive.
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
		ts.Fatalf("sleep: unknown argument %q", args[0])
	}
}

// packingNow reports whether packing is delayed.
func packingNow(o seen, want string) (string, bool) {
	p := &o.s.hostile.packing
	p.mu.Lock()
	defer p.mu.Unlock()
	return yesNo(p.busy > 0, want)
}

// asleep returns the kind of the suspended task's saved work, kept if saved work exists while the task has a VM, or
// none.
func asleep(t *state.Task) string {
	switch {
	case t.Suspended == nil:
		return "none"
	case t.VM != nil:
		return "kept"
	}
	return string(t.Suspended.Mode)
}

// archives counts the files of saved work.
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

// queued=KIND is true if a job of that kind is waiting or running.
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
