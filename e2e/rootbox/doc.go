// Package rootbox creates isolated machines for tests: each box has its own address, its own
// kernel namespaces, a disk that can fill up, systemd, a real OpenSSH server, and cloud-init, which
// applies the given user data. A box starts in two or three seconds.
//
// It needs root on Linux with cgroup v1 and some Debian packages (see Require); without them
// a test is skipped with the reason. No program of errand imports it. A box is no security boundary: root in it is
// trusted as far as the test is. It simulates the behavior of a VM, not its isolation.
//
// Boxes end with the process that created them. Their namespaces take mounts, links and loop devices with
// them; the remains of a crash (a bridge, cgroups, files) are removed when the next Lab opens.
//
// Start reading at Open, then Lab.Boot. faults.go has the faults of a box, and machines.go uses boxes
// as servers of the Hetzner simulator.
package rootbox
