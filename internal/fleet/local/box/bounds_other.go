//go:build !linux

package box

import "context"

func hostMemory() int64 { return 8 << 30 }

func boundCommand(int, int) {}

func watchMemory(context.Context, int, int64) {}

// cgroup is empty here: only Linux has control groups.
type cgroup struct{}

func newCgroup(string, Bounds) *cgroup { return &cgroup{} }

func cgroupName(Record, string) string { return "" }

func (*cgroup) hasController(string) bool { return false }

func (*cgroup) moveProcess(int) error { return nil }

func (*cgroup) remove() {}
