//go:build !linux || !(amd64 || arm64)

package disktest

import "testing"

// Run plays a test with disk errors and power cuts.
func Run(t *testing.T, _ Disk) []Call {
	t.Helper()
	t.Skip("SKIP: disk errors can be simulated only on Linux")
	return nil
}

// Say reports a guarantee that holds from now on.
func Say(string) {}

// Small plays a scenario on a small file system.
func Small(t *testing.T, _ int, _ func(t *testing.T, dir string)) {
	t.Helper()
	t.Skip("SKIP: small file systems can be created only on Linux")
}
