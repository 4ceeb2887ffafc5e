package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local/box"
)

// probed is which kind of box works here.
type probed struct {
	kind  string
	notes []string
}

// Describe says which kind of box this host can run, and why not a better one.
// The first call starts boxes to find out.
func (p *Provider) Describe(ctx context.Context) (fleet.Description, error) {
	found, err := p.kind(ctx)
	if err != nil {
		return fleet.Description{}, fmt.Errorf("describe local provider: %w", err)
	}
	return fleet.Description{
		Provider: p.Name(), Kind: found.kind, Isolation: isolation(found.kind), Notes: found.notes,
	}, nil
}

// kind probes once; a failure is not remembered, since somebody may install what
// was missing.
func (p *Provider) kind(ctx context.Context) (probed, error) {
	p.probing.Lock()
	defer p.probing.Unlock()
	if p.found != nil {
		return *p.found, nil
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
			found.notes = append(found.notes, advice(kind)...)
			p.found = &found
			return found, nil
		}
		if errors.Is(last, context.DeadlineExceeded) || errors.Is(last, context.Canceled) {
			break // a busy host is no evidence: nothing is chosen, least of all something weaker
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
	defer removeAll(dir)
	rec := p.record(kind)
	rec.Name = "probe"
	return box.Probe(ctx, rec, dir)
}

func advice(kind string) []string {
	switch kind {
	case KindUserns:
		return []string{"boxes see the files of this host; install bubblewrap to give them their own"}
	case KindPlain:
		return []string{"boxes are not isolated from this host; install bubblewrap, and where AppArmor " +
			"restricts user namespaces (Ubuntu 23.10 and later) allow them for bwrap"}
	default:
		return nil
	}
}
