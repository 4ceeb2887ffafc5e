package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/errand-bot/errand/internal/runner/work"
)

// Unpack reads and verifies a whole stream, and only then restores the work: checkout, index, branches and stashes as
// they were when packed, and sessions and caches in their places. The checkout must have been prepared, and no agent
// may run; its content beyond the base is lost. After any failure Unpack may be called again, from the beginning of the
// stream.
func Unpack(ctx context.Context, spec UnpackSpec, from io.Reader) (Manifest, error) {
	m, err := unpack(ctx, spec, from)
	if err != nil {
		return Manifest{}, fmt.Errorf("unpack into %s: %w", spec.Dir, err)
	}
	return m, nil
}

// unpacker restores one stream in one checkout.
type unpacker struct {
	spec UnpackSpec
	git  *work.Repo
	dir  *area // the checkout; its staging folder is in .git
	home *area
	m    Manifest
	oids map[string]bool // ids of the large files in the stream
}

func unpack(ctx context.Context, spec UnpackSpec, from io.Reader) (Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, packTimeout)
	defer cancel()
	spec, err := spec.withDefaults()
	if err != nil {
		return Manifest{}, err
	}
	u, leave, err := enter(ctx, spec)
	if err != nil {
		return Manifest{}, err
	}
	defer leave()
	if u.m, err = read(&ctxReader{ctx: ctx, from: from}, spec.Limit, u.stage); err != nil {
		return Manifest{}, err
	}
	if err := u.apply(ctx, u.steps()); err != nil {
		return Manifest{}, err
	}
	return u.m, nil
}

// enter locks the checkout and opens both staging folders.
func enter(ctx context.Context, spec UnpackSpec) (*unpacker, func(), error) {
	git, leave, err := work.Enter(ctx, spec.Dir)
	if err != nil {
		return nil, nil, err
	}
	dir, err := openArea(spec.Dir, ".git/errand-unpack")
	if err != nil {
		leave()
		return nil, nil, fmt.Errorf("open the checkout: %w", err)
	}
	home, err := openArea(spec.Home, ".errand/unpack")
	if err != nil {
		dir.close()
		leave()
		return nil, nil, fmt.Errorf("open the home directory: %w", err)
	}
	return &unpacker{spec: spec, git: git, dir: dir, home: home, oids: map[string]bool{}}, func() {
		home.close()
		dir.close()
		leave()
	}, nil
}

// stage writes an entry to a staging folder.
func (u *unpacker) stage(e entry, content io.Reader) error {
	switch e.part {
	case partObjects:
		return u.dir.append("objects", content)
	case partLarge:
		u.oids[e.name] = true
		return u.dir.put(partLarge+"/"+e.name, e, content)
	case partHome:
		return u.home.put("home/"+e.name, e, content)
	case partKeep:
		if e.name[0] == 'h' {
			return u.home.put("keep/"+e.name, e, content)
		}
		return u.dir.put("keep/"+e.name, e, content)
	default:
		return u.dir.put(e.part+"/"+e.name, e, content)
	}
}

// step is one step of restoring the work.
type step struct {
	name string
	do   func(context.Context) error
}

func (u *unpacker) steps() []step {
	return []step{
		{"take in the commits", u.objects},
		{"put the large files back", u.large},
		{"put the branches back", u.refs},
		{"put the index back", u.index},
		{"remove deleted files", u.deleted},
		{"put changed files back", u.files},
		{"put large files into the checkout", u.contents},
		{"put the state of an unfinished git operation back", u.state},
		{"put the stashes back", u.stashes},
		{"put the sessions back", u.sessions},
		{"put the caches back", u.restoreCaches},
	}
}

// apply executes the steps. Each step may be repeated.
func (u *unpacker) apply(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// objects ensures that the base exists and imports the commits on top of it.
func (u *unpacker) objects(ctx context.Context) error {
	if err := u.git.Fetch(ctx, u.spec.Source, u.m.Base); err != nil {
		return fmt.Errorf("%w: %w", ErrNoBase, err)
	}
	f, err := u.dir.open("objects")
	if err == nil {
		defer func() { _ = f.Close() }()
		if _, err := u.git.Run(ctx, f, "index-pack", "--stdin", "--fix-thin", fmt.Sprintf("--max-input-size=%d", u.spec.Limit)); err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return u.checkConnected(ctx)
}
