// Package rootbox makes computers for tests that want real ones: each box has its own address, its own
// kernel namespaces, a disk that can be full, systemd, a real OpenSSH server, and cloud-init, which
// applies the user data that it is given. A box is up in two or three seconds.
//
// It needs root on Linux with cgroup v1 and some Debian packages (see Require); where they are missing
// a test says so and is skipped. No program of errand imports it. A box is no prison: root in it is
// trusted as far as the test is. It shows what a VM does, not that nobody gets out.
//
// Boxes end with the process that made them. Their namespaces take mounts, links and loop devices with
// them; what stays after a crash (a bridge, cgroups, files) is removed when the next Lab opens.
//
// Start reading at Open, then Lab.Boot; faults.go has what can befall a box, and machines.go puts boxes
// behind the stand-in for Hetzner.
package rootbox
