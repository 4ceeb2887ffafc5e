package runnerctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
)

// packTimeout bounds the transfer of a VM's work, one way.
const packTimeout = 30 * time.Minute

// Pack has a VM's work packed and written to w as it comes, and checks it on the way. No run may be
// alive on the VM. After an error w holds nothing of use, and Pack may be called again. Errors match
// pack.ErrTooLarge, pack.ErrNoBase and work.ErrNoRepository, for which trying again does not help,
// remote.ErrConnectionLost, perhaps with pack.ErrCut, or pack.ErrMalformed if the VM sent what no
// Pack writes.
func (c *Controller) Pack(ctx context.Context, vm string, spec pack.Spec, w io.Writer) (pack.Manifest, error) {
	m, err := c.pack(ctx, vm, spec, w)
	if err != nil {
		return pack.Manifest{}, fmt.Errorf("pack the work on VM %s: %w", vm, err)
	}
	return m, nil
}

func (c *Controller) pack(ctx context.Context, vm string, spec pack.Spec, w io.Writer) (pack.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, packTimeout)
	defer cancel()
	place, cl, err := c.reach(ctx, vm)
	if err != nil {
		return pack.Manifest{}, err
	}
	in, err := json.Marshal(spec)
	if err != nil {
		return pack.Manifest{}, fmt.Errorf("encode: %w", err)
	}
	out, wait, err := cl.Stream(ctx, remote.Cmd{Argv: []string{place.Runner, "pack"}, Stdin: bytes.NewReader(in)})
	if err != nil {
		return pack.Manifest{}, err
	}
	// What a VM sends is not believed to end: compressed, it can hardly be larger than what is in it.
	to := &bounded{to: w, left: orLimit(spec.Limit)*5/4 + 1<<30}
	m, read := pack.Verify(io.TeeReader(out, to), spec.Limit)
	if read == nil || errors.Is(read, pack.ErrCut) {
		_, _ = io.Copy(to, out) // to its end, so that the command can end by itself and say why
	} else {
		_ = out.Close()
	}
	res, ran := wait()
	if to.err != nil {
		return pack.Manifest{}, fmt.Errorf("write the archive: %w", to.err)
	}
	// The command's own words tell more than that its output ended early.
	if words := res.Check("errand-runner pack"); ran == nil && words != nil {
		return pack.Manifest{}, sentinel(words)
	}
	switch {
	case read != nil && ran != nil && errors.Is(read, pack.ErrCut):
		return pack.Manifest{}, fmt.Errorf("%w: %w", read, ran) // how the command ended says why
	case read != nil:
		return pack.Manifest{}, read
	default:
		return m, ran
	}
}

// Unpack puts packed work into the checkout on a VM, which Prepare has made. r is read from its
// beginning to its end and not any more after Unpack has returned. After an error Unpack may be
// called again with the same stream from its beginning. Errors match pack.ErrMalformed,
// pack.ErrNoBase and work.ErrNoRepository, for which trying again does not help; pack.ErrCut if the
// stream was not whole, or remote.ErrConnectionLost.
func (c *Controller) Unpack(ctx context.Context, vm string, spec pack.UnpackSpec, r io.Reader) (pack.Manifest, error) {
	m, err := c.unpack(ctx, vm, spec, r)
	if err != nil {
		return pack.Manifest{}, fmt.Errorf("unpack the work on VM %s: %w", vm, err)
	}
	return m, nil
}

func (c *Controller) unpack(ctx context.Context, vm string, spec pack.UnpackSpec, r io.Reader) (pack.Manifest, error) {
	ctx, cancel := context.WithTimeout(ctx, packTimeout)
	defer cancel()
	place, cl, err := c.reach(ctx, vm)
	if err != nil {
		return pack.Manifest{}, err
	}
	line, err := json.Marshal(spec)
	if err != nil {
		return pack.Manifest{}, fmt.Errorf("encode: %w", err)
	}
	from := &gate{from: r}
	stdin := io.MultiReader(bytes.NewReader(append(line, '\n')), from)
	res, err := cl.Run(ctx, remote.Cmd{Argv: []string{place.Runner, "unpack"}, Stdin: stdin, MaxOutput: maxAnswer})
	if cause := from.shut(); cause != nil {
		return pack.Manifest{}, fmt.Errorf("read the archive: %w", cause)
	}
	if err != nil {
		return pack.Manifest{}, err
	}
	if err := res.Check("errand-runner unpack"); err != nil {
		return pack.Manifest{}, sentinel(err)
	}
	var m pack.Manifest
	if err := json.Unmarshal(res.Stdout, &m); err != nil {
		return pack.Manifest{}, fmt.Errorf("read the answer of errand-runner unpack: %w", err)
	}
	return m, nil
}

func (c *Controller) reach(ctx context.Context, vm string) (Place, *remote.Client, error) {
	place, err := c.Place(ctx, vm)
	if err != nil {
		return Place{}, nil, err
	}
	cl, err := c.fleet.Client(ctx, vm)
	if err != nil {
		return Place{}, nil, fmt.Errorf("reach VM %s: %w", vm, err)
	}
	return place, cl, nil
}

// sentinel lets an error that the runner printed match what it was there.
func sentinel(err error) error {
	for _, known := range []error{pack.ErrTooLarge, pack.ErrNoBase, work.ErrNoRepository, pack.ErrMalformed, pack.ErrCut} {
		if strings.Contains(err.Error(), known.Error()) {
			return fmt.Errorf("%w: %w", known, err)
		}
	}
	return err
}

func orLimit(limit int64) int64 {
	if limit <= 0 {
		return pack.DefaultLimit
	}
	return limit
}

// bounded writes so much and no more, and remembers its failure.
type bounded struct {
	to   io.Writer
	left int64
	err  error
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 && b.err == nil {
		b.err = fmt.Errorf("%w: it does not end", pack.ErrMalformed)
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.to.Write(p)
	b.err = err
	return n, err
}

// gate is a reader that can be shut: whoever reads on then reads nothing.
type gate struct {
	mu   sync.Mutex
	from io.Reader
	err  error
	done bool
}

func (g *gate) Read(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.done {
		return 0, io.EOF
	}
	n, err := g.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		g.err = err
	}
	return n, err
}

// shut returns what reading failed with, if it did.
func (g *gate) shut() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done = true
	return g.err
}
