package pack

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/errand-bot/errand/internal/runner/work"
)

// packTimeout bounds one Pack or Unpack.
const packTimeout = 30 * time.Minute

// Pack writes the work in a checkout, the agent's sessions and the listed caches as one stream. No process of the agent
// may be alive. Pack only removes stale locks of a killed git, and special files that would block git, so it may be
// called again. After an error the stream is incomplete, and Verify and Unpack refuse it.
func Pack(ctx context.Context, spec Spec, to io.Writer) (Manifest, error) {
	m, err := doPack(ctx, spec, to)
	if err != nil {
		return Manifest{}, fmt.Errorf("pack %s: %w", spec.Dir, err)
	}
	return m, nil
}

// packer packs one checkout.
type packer struct {
	spec Spec
	git  *work.Repo
	dir  *os.Root // the checkout
	home *os.Root // nil if there is none
	m    *Manifest
	out  *writer
}

func doPack(ctx context.Context, spec Spec, to io.Writer) (Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, packTimeout)
	defer cancel()
	spec, err := spec.withDefaults()
	if err != nil {
		return Manifest{}, err
	}
	p := &packer{spec: spec, m: &Manifest{Form: Form, Base: spec.Base, Dir: spec.Dir, Home: spec.Home}}
	closeRoots, err := p.openRoots()
	if err != nil {
		return Manifest{}, err
	}
	defer closeRoots()
	if err := p.removeBlocking(ctx); err != nil {
		return Manifest{}, err
	}
	git, leave, err := work.Enter(ctx, spec.Dir)
	if err != nil {
		return Manifest{}, err
	}
	defer leave()
	p.git = git
	plan, err := p.plan(ctx)
	if err != nil {
		return Manifest{}, err
	}
	if p.out, err = newWriter(ctx, to, p.m, spec.Limit); err != nil {
		return Manifest{}, err
	}
	if err := p.write(ctx, plan); err != nil {
		p.out.abandon()
		return Manifest{}, err
	}
	return *p.m, nil
}

func (p *packer) openRoots() (func(), error) {
	dir, err := os.OpenRoot(p.spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the checkout: %w", err)
	}
	p.dir = dir
	home, err := os.OpenRoot(p.spec.Home)
	if err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("open the home directory: %w", err)
	}
	p.home = home
	return func() { _, _ = dir.Close(), home.Close() }, nil
}

// plan is the content to write, determined before the first byte is written.
type plan struct {
	history
	changes
	state    []item
	large    []item
	sessions []item
	keep     []item
}

func (p *packer) plan(ctx context.Context) (*plan, error) {
	var all plan
	var err error
	if all.changes, err = p.findChanges(ctx); err != nil {
		return nil, err
	}
	if all.state, err = p.inProgressFiles(); err != nil {
		return nil, err
	}
	if all.history, err = p.history(ctx, all.changes.blobs, all.state); err != nil {
		return nil, err
	}
	if all.large, err = p.large(ctx, all.history, all.files); err != nil {
		return nil, err
	}
	if all.sessions, err = p.sessions(ctx); err != nil {
		return nil, err
	}
	if all.keep, err = p.listCaches(ctx); err != nil {
		return nil, err
	}
	p.m.Paths = len(all.files) + len(all.deleted)
	return &all, p.withinLimit(&all)
}

// write writes the parts in order.
func (p *packer) write(ctx context.Context, all *plan) error {
	p.out.begin(partGit)
	if err := p.addData(gitIndex, all.index); err != nil {
		return err
	}
	if err := p.addData(gitDeleted, joinNul(all.deleted)); err != nil {
		return err
	}
	if err := p.addItems(all.state); err != nil {
		return err
	}
	p.out.begin(partObjects)
	if err := p.objects(ctx, all.history); err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		items []item
	}{{partLarge, all.large}, {partWork, all.files}, {partHome, all.sessions}, {partKeep, all.keep}} {
		p.out.begin(part.name)
		if err := p.addItems(part.items); err != nil {
			return err
		}
	}
	return p.out.finish()
}
