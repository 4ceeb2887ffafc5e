package runnerctl_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func sh(t *testing.T, dir, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), "sh", "-ec", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// boxes are real boxes with the real runner, reached over SSH, whose connections can be cut.
type boxes struct {
	t        *testing.T
	provider *local.Provider
	signer   ssh.Signer
	bin      string
	runner   atomic.Pointer[string] // instead of the real one
	cut      atomic.Int64           // bytes after which a connection is cut, 0 is never

	mu      sync.Mutex
	clients map[string]*remote.Client
}

func newBoxes(t *testing.T) *boxes {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "errand-runner")
	if err := buildtest.Program(testContext(t), filepath.Dir(bin), "errand-runner"); err != nil {
		t.Fatal(err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &boxes{t: t, bin: bin, clients: map[string]*remote.Client{}}
	if b.signer, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	b.provider, err = local.New(local.Config{Dir: t.TempDir(), Kind: local.KindPlain, Runner: bin, ClientKey: b.signer.PublicKey(), Deployment: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *boxes) create(name string) fleet.VM {
	b.t.Helper()
	vm, err := b.provider.Create(testContext(b.t), fleet.Spec{Name: name})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := b.provider.Delete(context.Background(), name, fleet.ReasonDone); err != nil {
			b.t.Error(err)
		}
	})
	return vm
}

func (b *boxes) Get(ctx context.Context, vm string) (fleet.VM, error) {
	facts, err := b.provider.Get(ctx, vm)
	if other := b.runner.Load(); other != nil && err == nil {
		facts.Facts[fleet.FactRunner] = *other
	}
	return facts, err
}

func (b *boxes) Client(ctx context.Context, vm string) (*remote.Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.clients[vm]; c != nil && c.Err() == nil && b.cut.Load() == 0 {
		return c, nil
	}
	facts, err := b.provider.Get(ctx, vm)
	if err != nil {
		return nil, err
	}
	c, err := remote.Dial(ctx, facts.Endpoint, remote.Config{Signer: b.signer, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if n := b.cut.Load(); n > 0 && err == nil {
			cutting := &cutConn{Conn: conn}
			cutting.left.Store(n)
			return cutting, nil
		}
		return conn, err
	}})
	if err == nil {
		if b.cut.Load() == 0 { // one that is cut serves once
			b.clients[vm] = c
		}
		b.t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func (b *boxes) RunnerClient(ctx context.Context, vm string) (*remote.Client, error) {
	return b.Client(ctx, vm)
}

// cutConn breaks after so many bytes in both directions together.
type cutConn struct {
	net.Conn
	left atomic.Int64
}

func (c *cutConn) count(n int) {
	if c.left.Add(-int64(n)) <= 0 {
		_ = c.Close()
	}
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.count(n)
	return n, err
}

func (c *cutConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.count(n)
	return n, err
}

// TestPack carries work and a session from one box to another, through an archive on disk, with
// everything that can go wrong on the way.
func TestPack(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	b := newBoxes(t)
	from, to := b.create("from"), b.create("to")
	ctl := runnerctl.New(b, "")
	origin := t.TempDir()
	base := sh(t, origin, `git init -q -b main; echo one > file; git add file; git commit -qm First; git config uploadpack.allowAnySHA1InWant true; git rev-parse HEAD`)
	dirs := map[string]string{}
	for _, vm := range []fleet.VM{from, to} {
		place, err := ctl.Place(ctx, vm.Name)
		if err != nil {
			t.Fatal(err)
		}
		dirs[vm.Name] = place.Dir
		_, err = ctl.Prepare(ctx, vm.Name, work.PrepareSpec{Dir: place.Dir, Source: work.Source{URL: "file://" + origin, Ref: "refs/heads/main"}, Branch: "errand/1", Base: base})
		if err != nil {
			t.Fatal(err)
		}
	}
	slug := func(name string) string {
		return ".claude/projects/" + regexp.MustCompile(`[^A-Za-z0-9]`).ReplaceAllString(dirs[name], "-")
	}
	home := from.Facts[fleet.FactHome]
	sh(t, home, `cd work; echo two > two; git add two; git commit -qm Two; echo three > three; head -c 2000000 /dev/urandom > large; cd ..
		mkdir -p `+slug("from")+`; echo session > `+slug("from")+`/s.jsonl`)
	spec := pack.Spec{Dir: dirs["from"], Home: home, Base: base}
	toSpec := pack.UnpackSpec{Dir: dirs["to"], Home: to.Facts[fleet.FactHome]}

	packFails(t, ctl, b, spec)

	files, err := archive.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := files.SaveSleep("1-1", func(w io.Writer) (pack.Manifest, error) { return ctl.Pack(ctx, "from", spec, w) })
	if err != nil {
		t.Fatal(err)
	}
	if saved.Manifest.Paths != 2 || saved.Manifest.Sessions() != 1 || saved.Bytes < 2_000_000 {
		t.Errorf("saved %+v", saved)
	}
	f, err := files.OpenSleep(saved.Ref, saved.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stream, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	unpackFails(t, ctl, b, toSpec, stream)
	m, err := ctl.Unpack(ctx, "to", toSpec, bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved.Manifest, m); diff != "" {
		t.Errorf("manifest (-saved +unpacked):\n%s", diff)
	}
	look := "cat two three; git log --format=%s; git status --porcelain; sha256sum < large"
	if diff := cmp.Diff(sh(t, dirs["from"], look), sh(t, dirs["to"], look)); diff != "" {
		t.Errorf("checkout (-packed +unpacked):\n%s", diff)
	}
	if got := sh(t, to.Facts[fleet.FactHome], "cat "+slug("to")+"/s.jsonl"); got != "session" {
		t.Errorf("session %q", got)
	}
}

// packFails packs in every way that fails, each of which leaves the VM as it was.
func packFails(t *testing.T, ctl *runnerctl.Controller, b *boxes, good pack.Spec) {
	t.Helper()
	ctx := testContext(t)
	broken := errors.New("disk full")
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "runner")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, test := range map[string]struct {
		change func(*pack.Spec)
		runner string // what plays the runner
		cut    int64
		to     io.Writer
		want   error
		words  string
	}{
		"no base":            {change: func(s *pack.Spec) { s.Base = strings.Repeat("a", 40) }, want: pack.ErrNoBase},
		"too large":          {change: func(s *pack.Spec) { s.Limit = 1000 }, want: pack.ErrTooLarge},
		"no checkout":        {change: func(s *pack.Spec) { s.Dir = s.Home }, want: work.ErrNoRepository},
		"cannot be written":  {to: failing{broken}, want: broken},
		"connection is cut":  {cut: 300_000, want: remote.ErrConnectionLost},
		"VM sends garbage":   {runner: script("yes"), want: pack.ErrMalformed},
		"VM sends nothing":   {runner: script("exit 0"), want: pack.ErrCut},
		"VM sends the start": {runner: script(`"` + b.bin + `" "$@" | head -c 1000`), want: pack.ErrCut},
		"VM sends and fails": {runner: script(`"` + b.bin + `" "$@"; echo oh dear >&2; exit 3`), words: "oh dear"},
	} {
		spec := good
		if test.change != nil {
			test.change(&spec)
		}
		if test.to == nil {
			test.to = io.Discard
		}
		if test.runner != "" {
			b.runner.Store(&test.runner)
		}
		b.cut.Store(test.cut)
		_, err := ctl.Pack(ctx, "from", spec, test.to)
		b.runner.Store(nil)
		b.cut.Store(0)
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: error %v, want %v", name, err, test.want)
		}
	}
}

// unpackFails unpacks in every way that fails, each of which leaves the checkout as it was.
func unpackFails(t *testing.T, ctl *runnerctl.Controller, b *boxes, spec pack.UnpackSpec, stream []byte) {
	t.Helper()
	ctx := testContext(t)
	broken := errors.New("disk broken")
	for name, test := range map[string]struct {
		from io.Reader
		cut  int64
		want error
	}{
		"cut archive":       {from: bytes.NewReader(stream[:len(stream)/2]), want: pack.ErrCut},
		"damaged archive":   {from: io.MultiReader(bytes.NewReader(stream[:len(stream)/2]), bytes.NewReader(stream)), want: pack.ErrMalformed},
		"unreadable":        {from: io.MultiReader(bytes.NewReader(stream[:100]), iotest.ErrReader(broken)), want: broken},
		"connection is cut": {from: bytes.NewReader(stream), cut: 300_000, want: remote.ErrConnectionLost},
	} {
		b.cut.Store(test.cut)
		_, err := ctl.Unpack(ctx, "to", spec, test.from)
		b.cut.Store(0)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", name, err, test.want)
		}
	}
	if got := sh(t, spec.Dir, "git log --format=%s; git status --porcelain"); got != "First" {
		t.Errorf("the checkout after failures: %q", got)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
