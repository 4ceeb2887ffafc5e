//go:build linux

package rootbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/remote"
)

// TestConnectionEnds cuts, freezes and kills a box with an open connection. There is no error; the keepalive must
// detect the failure, but not before its deadline.
func TestConnectionEnds(t *testing.T) {
	t.Parallel()
	lab, k := openLab(t), newKeys(t)
	box := boot(t, lab, rootbox.Spec{UserData: k.userData("")})
	const deadline = 2 * time.Second
	cfg := remote.Config{Signer: k.client, KeepaliveEvery: 300 * time.Millisecond, KeepaliveDeadline: deadline}
	for _, fault := range []struct {
		name     string
		do, undo func() error
	}{
		{"cut", func() error { return box.Cut(within(t)) }, func() error { return box.Heal(within(t)) }},
		{"frozen", func() error { return box.Freeze(within(t)) }, box.Thaw},
		{"killed", func() error { return box.Kill(within(t)) }, func() error { return box.PowerOn(within(t)) }},
	} {
		c, err := remote.Dial(within(t), k.endpoint(box, "errand"), cfg)
		must(t, err)
		ended := make(chan error, 1)
		go func() {
			_, err := c.Run(t.Context(), remote.Cmd{Argv: []string{"sleep", "600"}})
			ended <- err
		}()
		begun := time.Now()
		must(t, fault.do())
		select {
		case err := <-ended:
			if !errors.Is(err, remote.ErrConnectionLost) {
				t.Errorf("%s: the command ended with %v", fault.name, err)
			}
		case <-within(t).Done():
			t.Fatalf("%s: not detected", fault.name)
		}
		if took := time.Since(begun); took < deadline-cfg.KeepaliveEvery {
			t.Errorf("%s: detected after %v, before the deadline", fault.name, took)
		}
		must(t, c.Close())
		must(t, fault.undo())
		must(t, box.AwaitSSH(within(t)))
	}
	if got := sh(t, k.dial(t, box, "errand"), "echo well"); got != "well" {
		t.Errorf("after the faults: got %q", got)
	}
}

// TestDiskFull fills the disk and clears it again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	lab, k := openLab(t), newKeys(t)
	box := boot(t, lab, rootbox.Spec{UserData: k.userData(""), DiskMB: 256})
	c := k.dial(t, box, "errand")
	write := "head -c 100000 /dev/urandom > file && sync file && echo fits; rm -f file"
	if got := sh(t, c, write); got != "fits" {
		t.Fatalf("before: got %q", got)
	}
	must(t, box.Fill())
	if got := sh(t, c, write+" 2>/dev/null"); got != "" {
		t.Errorf("on a full disk: %q", got)
	}
	k.dial(t, box, "root") // logins and reads still work
	must(t, box.Empty())
	if got := sh(t, c, write); got != "fits" {
		t.Errorf("afterwards: got %q", got)
	}
}

// TestMemoryEnds: the kernel kills the process that uses too much memory, and no other.
func TestMemoryEnds(t *testing.T) {
	t.Parallel()
	lab, k := openLab(t), newKeys(t)
	box := boot(t, lab, rootbox.Spec{UserData: k.userData("")})
	c := k.dial(t, box, "errand")
	const hog = "head -c 200M /dev/zero | tail -c 150M | wc -c"
	if got := sh(t, c, hog); got != "157286400" {
		t.Fatalf("before: got %q", got)
	}
	must(t, box.Starve(80))
	if got := sh(t, c, hog); got == "157286400" {
		t.Error("the process with too much memory still runs")
	}
	if n, err := box.Killed(); err != nil || n == 0 {
		t.Errorf("got %d killed processes, %v, want 1", n, err)
	}
	must(t, box.Feed())
	if got := sh(t, k.dial(t, box, "errand"), hog); got != "157286400" {
		t.Errorf("afterwards: got %q", got)
	}
}

// TestSlowLink measures the throughput.
func TestSlowLink(t *testing.T) {
	t.Parallel()
	lab, k := openLab(t), newKeys(t)
	box := boot(t, lab, rootbox.Spec{UserData: k.userData("")})
	c := k.dial(t, box, "errand")
	fetch := func() time.Duration {
		begun := time.Now()
		if got := sh(t, c, "head -c 200000 /dev/urandom"); len(got) < 100000 {
			t.Fatalf("got %d bytes", len(got))
		}
		return time.Since(begun)
	}
	fetch()
	must(t, box.Slow(within(t), 800))
	if took := fetch(); took < time.Second { // 1.6 Mbit at 0.8 Mbit/s
		t.Errorf("the slow link took %v", took)
	}
	must(t, box.Fast(within(t)))
	fetch()
}

// TestTornSnapshot takes a snapshot of a running box during writes: synced data is in it.
func TestTornSnapshot(t *testing.T) {
	t.Parallel()
	lab, k := openLab(t), newKeys(t)
	box := boot(t, lab, rootbox.Spec{UserData: k.userData("")})
	c := k.dial(t, box, "root")
	sh(t, c, "echo safe > /root/safe; sync")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		_, _ = c.Run(ctx, remote.Cmd{Argv: []string{"sh", "-c", "while :; do head -c 1000000 /dev/urandom > /root/torn; done"}}) // ends with ctx
	}()
	image, err := box.Snapshot(within(t))
	must(t, err)
	stop()
	twin := boot(t, lab, rootbox.Spec{Name: "torn", Image: image, UserData: k.userData("")})
	if got := sh(t, k.dial(t, twin, "root"), "cat /root/safe"); !strings.Contains(got, "safe") {
		t.Errorf("snapshot: got %q", got)
	}
	must(t, lab.DeleteImage(image))
	if err := lab.DeleteImage("/etc/passwd"); err == nil {
		t.Error("DeleteImage accepted a path outside the lab")
	}
}
