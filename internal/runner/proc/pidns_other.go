//go:build !linux

package proc

import "errors"

const orderInterrupt = 'i'

type nsReport struct{}

func (*nsReport) exit(error) Exit { return Exit{Code: -1} }

func (p *Process) startNamespaced(Command) error {
	return errors.New("start in a PID namespace: only on Linux")
}

// Probe returns the best isolation on this system.
func Probe() Isolation { return Group }

// Init is the "ns-init" subcommand. It is available on Linux only.
func Init([]string) int { return 127 }
