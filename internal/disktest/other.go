//go:build !linux || !(amd64 || arm64)

package disktest

import "testing"

// Run plays a test on a disk that fails.
func Run(t *testing.T, _ Disk) []Call {
	t.Helper()
	t.Skip("SKIP: disks can be made to fail on Linux only")
	return nil
}

// Say tells what a scenario relies on from now on.
func Say(string) {}

// Small plays a scenario on a small file system.
func Small(t *testing.T, _ int, _ func(t *testing.T, dir string)) {
	t.Helper()
	t.Skip("SKIP: small file systems can be made on Linux only")
}
