//go:build linux

package rootbox

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"
)

// remainsOf lists the remains of a lab on the host.
func remainsOf(slot int) (all []string) {
	for _, pattern := range []string{
		fmt.Sprintf("/sys/fs/cgroup/*/errand-rootbox-%d", slot), "/sys/class/net/" + bridgeName(slot), "/sys/class/net/" + bridgeName(slot) + "v*", labDir(slot),
	} {
		found, err := filepath.Glob(pattern)
		all = append(all, found...)
		if err != nil {
			all = append(all, err.Error())
		}
	}
	return all
}

// TestNothingStays simulates a crash of a lab with a frozen box, sweeps, and expects no remains on the host.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lab, err := Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Close()
	box, err := lab.Boot(ctx, Spec{})
	if err == nil {
		err = box.AwaitSSH(ctx)
	}
	if err == nil {
		err = box.Freeze(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := remainsOf(lab.slot); len(got) < 4+2 {
		t.Errorf("the test misses objects of the lab: got %v", got)
	}
	if err := Sweep(ctx); err != nil || !box.Running() {
		t.Errorf("a sweep damaged a running lab: %v", err)
	}
	off := box.Off()
	if err := remains(ctx, lab.slot); err != nil {
		t.Error(err)
	}
	if got := remainsOf(lab.slot); len(got) > 0 {
		t.Errorf("got remains: %v", got)
	}
	select {
	case <-off:
	case <-ctx.Done():
		t.Error("the box runs after the end of its lab")
	}
	if err := lab.Close(); err != nil {
		t.Error(err)
	}
}

// TestAddresses needs no root, because it only reserves addresses.
func TestAddresses(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	lab := &Lab{slot: 9, boxes: map[netip.Addr]*Box{}}
	first, err := lab.address(ctx, netip.Addr{}, &Box{})
	if err != nil || first.String() != "10.77.9.2" {
		t.Errorf("first address: got %v, %v", first, err)
	}
	if got, err := lab.address(ctx, netip.MustParseAddr("10.77.9.3"), &Box{}); err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := lab.address(ctx, netip.Addr{}, &Box{}); err != nil || got.String() != "10.77.9.4" {
		t.Errorf("next free address: got %v, %v", got, err)
	}
	for _, taken := range []string{"10.77.9.1", "10.78.0.1", "10.77.9.2"} {
		if _, err := lab.address(ctx, netip.MustParseAddr(taken), &Box{}); err == nil {
			t.Errorf("%s was assigned, want an error", taken)
		}
	}
}
