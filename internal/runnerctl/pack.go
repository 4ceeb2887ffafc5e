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

// packTimeout bounds the transfer of a VM's work in one direction.
const packTimeout = 30 * time.Minute

// Pack packs a VM's work, and verifies it while writing it to w. No run may be alive on the VM. After an error the data
// in w is unusable, and Pack may be called again. Errors match pack.ErrTooLarge, pack.ErrNoBase and
// work.ErrNoRepository, for which a retry does not help; remote.ErrConnectionLost, possibly with pack.ErrCut; or
// pack.ErrMalformed if the VM sent an invalid stream.
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
	place, cl, err := c.connect(ctx, vm)
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
	// A VM might send endless data; compressed data is hardly larger than its content.
	to := &limitedWriter{to: w, remaining: orLimit(spec.Limit)*5/4 + 1<<30}
	m, read := pack.Verify(io.TeeReader(out, to), spec.Limit)
	if read == nil || errors.Is(read, pack.ErrCut) {
		_, _ = io.Copy(to, out) // read to the end, so that the command can exit and report the reason
	} else {
		_ = out.Close()
	}
	res, ran := wait()
	if to.err != nil {
		return pack.Manifest{}, fmt.Errorf("write the archive: %w", to.err)
	}
	// The command's own message is more informative than the early end of its output.
	if words := res.Check("errand-runner pack"); ran == nil && words != nil {
		return pack.Manifest{}, wrapKnown(words)
	}
	switch {
	case read != nil && ran != nil && errors.Is(read, pack.ErrCut):
		return pack.Manifest{}, fmt.Errorf("%w: %w", read, ran) // the exit of the command explains the early end
	case read != nil:
		return pack.Manifest{}, read
	default:
		return m, ran
	}
}

// Unpack restores packed work in the checkout on a VM, which Prepare has created. r is read from its beginning, and no
// longer after Unpack has returned. After an error Unpack may be called again with the same stream from its beginning.
// Errors match pack.ErrMalformed, pack.ErrNoBase and work.ErrNoRepository, for which a retry does not help; pack.ErrCut
// if the stream was incomplete; or remote.ErrConnectionLost.
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
	place, cl, err := c.connect(ctx, vm)
	if err != nil {
		return pack.Manifest{}, err
	}
	line, err := json.Marshal(spec)
	if err != nil {
		return pack.Manifest{}, fmt.Errorf("encode: %w", err)
	}
	from := &closableReader{from: r}
	stdin := io.MultiReader(bytes.NewReader(append(line, '\n')), from)
	res, err := cl.Run(ctx, remote.Cmd{Argv: []string{place.Runner, "unpack"}, Stdin: stdin, MaxOutput: maxAnswer})
	if cause := from.shut(); cause != nil {
		return pack.Manifest{}, fmt.Errorf("read the archive: %w", cause)
	}
	if err != nil {
		return pack.Manifest{}, err
	}
	if err := res.Check("errand-runner unpack"); err != nil {
		return pack.Manifest{}, wrapKnown(err)
	}
	var m pack.Manifest
	if err := json.Unmarshal(res.Stdout, &m); err != nil {
		return pack.Manifest{}, fmt.Errorf("read the answer of errand-runner unpack: %w", err)
	}
	return m, nil
}

func (c *Controller) connect(ctx context.Context, vm string) (Place, *remote.Client, error) {
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

// wrapKnown makes an error that the runner printed match the corresponding error of its package.
func wrapKnown(err error) error {
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

// limitedWriter writes a limited number of bytes and records its error.
type limitedWriter struct {
	to        io.Writer
	remaining int64
	err       error
}

func (b *limitedWriter) Write(p []byte) (int, error) {
	if b.remaining -= int64(len(p)); b.remaining < 0 && b.err == nil {
		b.err = fmt.Errorf("%w: it exceeds its limit", pack.ErrMalformed)
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.to.Write(p)
	b.err = err
	return n, err
}

// closableReader is a reader that can be closed; further reads return io.EOF.
type closableReader struct {
	mu   sync.Mutex
	from io.Reader
	err  error
	done bool
}

func (g *closableReader) Read(b []byte) (int, error) {
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

// shut closes the reader and returns the error of reading, if any.
func (g *closableReader) shut() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done = true
	return g.err
}
