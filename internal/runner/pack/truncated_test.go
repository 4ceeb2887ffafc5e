package pack_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runner/pack"
)

// much is a change of every kind.
const much = `echo 1 > 1; git add 1; git commit -qm 1; echo 2 > 2; git stash -q -u; echo s > s; git add s; rm gone; echo w >> README
	git branch other; mkdir deep; echo u > deep/u; mkdir -p ../.claude/projects/p; echo s > ../.claude/projects/p/s.jsonl; mkdir node_modules; echo j > node_modules/j`

// TestTruncatedStreamChangesNothing truncates a stream at many places: the checkout stays unchanged, and the complete stream works.
func TestTruncatedStreamChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.vm(t), w.vm(t)
	sh(t, before.dir, much)
	spec := w.spec(before)
	spec.Keep = []string{"node_modules"}
	stream, _ := packed(t, spec)
	want, was := observableState(t, before, true), observableState(t, after, true)
	to := pack.UnpackSpec{Dir: after.dir, Home: after.home, Keep: spec.Keep}
	for i := 0; i < len(stream); i += max(1, len(stream)/23) {
		if _, err := pack.Unpack(testContext(t), to, bytes.NewReader(stream[:i])); !errors.Is(err, pack.ErrCut) {
			t.Errorf("cut after %d of %d bytes: %v", i, len(stream), err)
		}
		if _, err := pack.Verify(bytes.NewReader(stream[:i]), 0); !errors.Is(err, pack.ErrCut) {
			t.Errorf("verify %d of %d bytes: %v", i, len(stream), err)
		}
	}
	if diff := cmp.Diff(was, observableState(t, after, true)); diff != "" {
		t.Errorf("changed by streams that were cut (-before +after):\n%s", diff)
	}
	unpacked(t, after, spec.Keep, stream)
	if diff := cmp.Diff(want, observableState(t, after, true)); diff != "" {
		t.Errorf("the whole stream (-packed +unpacked):\n%s", diff)
	}
}

// TestKilledUnpackingIsRepeated kills the process that restores the work before each of its steps, and runs it again.
func TestKilledUnpackingIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.vm(t), w.vm(t)
	sh(t, before.dir, much)
	spec := w.spec(before)
	spec.Keep = []string{"node_modules"}
	stream, _ := packed(t, spec)
	want := observableState(t, before, true)
	to := pack.UnpackSpec{Dir: after.dir, Home: after.home, Keep: spec.Keep}
	for n := range pack.Steps() {
		if err := pack.UnpackUpTo(testContext(t), to, bytes.NewReader(stream), n); err == nil || errors.Is(err, pack.ErrMalformed) {
			t.Fatalf("killed before step %d: %v", n, err)
		}
		if n%3 == 2 {
			unpacked(t, after, spec.Keep, stream)
			if diff := cmp.Diff(want, observableState(t, after, true)); diff != "" {
				t.Fatalf("again after %d steps (-packed +unpacked):\n%s", n, diff)
			}
		}
	}
	unpacked(t, after, spec.Keep, stream)
	if diff := cmp.Diff(want, observableState(t, after, true)); diff != "" {
		t.Errorf("at last (-packed +unpacked):\n%s", diff)
	}
	if left := sh(t, after.home, "ls -A .errand work/.git | grep -i -e pack || true"); left != "" {
		t.Errorf("left: %s", left)
	}
}

// limited is a connection that breaks after some bytes.
type limited struct {
	to   io.Writer
	left int
}

var errBroken = errors.New("broken")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		n, _ := l.to.Write(b[:l.left])
		l.left = 0
		return n, errBroken
	}
	l.left -= len(b)
	return l.to.Write(b)
}

// TestPackCut breaks the connection while packing: Pack returns an error, the partial stream is refused, and the
// checkout can be packed again.
func TestPackCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.vm(t)
	sh(t, v.dir, much+"; head -c 5000000 /dev/urandom > large; git add large; git commit -qm Large; rm large; head -c 300000 /dev/urandom > other")
	was := observableState(t, v, true)
	whole, _ := packed(t, w.spec(v))
	for _, n := range []int{0, 1, 100, len(whole) / 2, len(whole) - 1} {
		var out bytes.Buffer
		if _, err := pack.Pack(testContext(t), w.spec(v), &limited{to: &out, left: n}); !errors.Is(err, errBroken) {
			t.Errorf("broken after %d bytes: %v", n, err)
		}
		if m, err := pack.Verify(&out, 0); err == nil {
			t.Errorf("accepted %+v", m)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pack.Pack(ctx, w.spec(v), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if diff := cmp.Diff(was, observableState(t, v, true)); diff != "" {
		t.Errorf("packing changed (-before +after):\n%s", diff)
	}
}

// TestMovedOn unpacks into a checkout that was prepared at a newer commit, and fetches the base where
// the checkout does not have it.
func TestMovedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.vm(t)
	sh(t, before.dir, "echo mine > mine; git add mine; git commit -qm Mine; echo more > more")
	stream, _ := packed(t, w.spec(before))
	want := observableState(t, before, false)
	newer := w
	newer.base = sh(t, w.dir(), "echo 3 > 3; git add 3; git commit -qm Third; git rev-parse HEAD")
	after := newer.vm(t)
	unpacked(t, after, nil, stream)
	if diff := cmp.Diff(want, observableState(t, after, false)); diff != "" {
		t.Errorf("on a newer base (-packed +unpacked):\n%s", diff)
	}
	rewritten := w
	rewritten.base = sh(t, w.dir(), "git tag old; git checkout -q --orphan new; git commit -qm New; git branch -f main; git rev-parse HEAD")
	other := rewritten.vm(t)
	spec := pack.UnpackSpec{Dir: other.dir, Home: other.home}
	if _, err := pack.Unpack(testContext(t), spec, bytes.NewReader(stream)); !errors.Is(err, pack.ErrNoBase) {
		t.Errorf("without the base: %v", err)
	}
	spec.URL = w.url
	if _, err := pack.Unpack(testContext(t), spec, bytes.NewReader(stream)); err != nil {
		t.Error(err)
	}
	if got := sh(t, other.dir, "cat mine more"); got != "mine\nmore" {
		t.Errorf("fetched, but %q", got)
	}
}
