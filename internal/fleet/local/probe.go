package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gofrs/flock"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local/box"
)

// probed is the kind of sandbox that works here.
type probed struct {
	kind  string
	notes []string
}

// Describe returns the kind of sandbox that this host can run, and why no better one works. The first call starts
// sandboxes to find out.
func (p *Provider) Describe(ctx context.Context) (fleet.Description, error) {
	found, err := p.probeKind(ctx)
	if err != nil {
		return fleet.Description{}, fmt.Errorf("describe local provider: %w", err)
	}
	return fleet.Description{
		Provider: p.Name(), Kind: found.kind, Isolation: isolationOf(found.kind), Notes: found.notes,
	}, nil
}

// probeKind probes once. It does not cache failures, since missing programs may be installed later.
func (p *Provider) probeKind(ctx context.Context) (probed, error) {
	p.probing.Lock()
	defer p.probing.Unlock()
	if p.found != nil {
		return *p.found, nil
	}
	if err := p.sweepProbes(); err != nil {
		return probed{}, err
	}
	candidates := []string{p.cfg.Kind}
	if p.cfg.Kind == KindAuto {
		candidates = []string{KindBwrap, KindUserns, KindPlain}
	}
	var found probed
	var last error
	for _, kind := range candidates {
		if last = p.probe(ctx, kind); last == nil {
			found.kind = kind
			found.notes = slices.Concat(found.notes, sandboxAdvice(kind), box.RootNotes(kind, p.cfg.Binds), p.cfg.Bounds.Notes(kind))
			p.found = &found
			return found, nil
		}
		if errors.Is(last, context.DeadlineExceeded) || errors.Is(last, context.Canceled) {
			break // a busy host proves nothing: do not choose a weaker kind
		}
		found.notes = append(found.notes, fmt.Sprintf("%s does not work here: %v", kind, last))
	}
	return probed{}, fmt.Errorf("no kind of box works here: %w", last)
}

func (p *Provider) probe(ctx context.Context, kind string) error {
	dir, err := os.MkdirTemp(filepath.Join(p.cfg.Dir, boxesDir), probePrefix)
	if err != nil {
		return err
	}
	defer RemoveAll(dir)
	lock := flock.New(filepath.Join(dir, probeLock)) // as long as this process lives
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the probe: %w", err)
	}
	defer func() { _ = lock.Close() }() // the file is removed with its directory
	rec := p.newRecord(kind)
	rec.Name = "probe"
	return box.Probe(ctx, rec, dir)
}

// probeLock is the file in a probe's directory that its process holds a lock on.
const probeLock = "probe.lock"

// sweepProbes removes the leftovers of processes that were killed during a probe.
func (p *Provider) sweepProbes() error {
	dirs, err := filepath.Glob(filepath.Join(p.cfg.Dir, boxesDir, probePrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for old probes: %w", err)
	}
	for _, dir := range dirs {
		lock := flock.New(filepath.Join(dir, probeLock))
		ours, err := lock.TryLock()
		if err == nil && ours {
			RemoveAll(dir)
		}
		_ = lock.Close() // best effort, like the whole sweep
	}
	return nil
}

func sandboxAdvice(kind string) []string {
	switch kind {
	case KindPlain:
		return []string{"boxes are not isolated from this host; install bubblewrap, and where AppArmor " +
			"restricts user namespaces (Ubuntu 23.10 and later) allow them for bwrap"}
	default:
		return nil
	}
}
