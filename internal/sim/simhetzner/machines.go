package simhetzner

import (
	"context"
	"net/netip"
	"time"
)

// machineTimeout bounds whatever a Machine is asked to do.
const machineTimeout = 5 * time.Minute

// Machines puts computers behind the servers. How they are reached is its own matter; it is told which
// address a server has. Implementations are safe for concurrent use.
type Machines interface {
	// Boot makes the computer of a new server and, if spec.Start, has it running when it returns. An
	// error makes the action start_server (or create_server) fail.
	Boot(ctx context.Context, spec MachineSpec) (Machine, error)
	// DeleteDisk throws away what Machine.Snapshot returned.
	DeleteDisk(ctx context.Context, handle string) error
}

// Machine is one computer. Its methods are never called at the same time, except that Delete may come
// at any moment.
type Machine interface {
	// Power switches it on or off. PowerShutdown returns when it is off, or an error if it does not obey.
	Power(ctx context.Context, op PowerOp) error
	// Snapshot copies its disk.
	Snapshot(ctx context.Context) (Disk, error)
	// Rebuild gives it a fresh disk and starts it, as Boot would.
	Rebuild(ctx context.Context, spec MachineSpec) error
	// Delete ends it with its disk. Deleting twice is no error.
	Delete(ctx context.Context) error
}

// PowerOp is what Machine.Power is asked for.
type PowerOp string

// What can be done about power.
const (
	PowerOn       PowerOp = "on"
	PowerOff      PowerOp = "off"
	PowerShutdown PowerOp = "shutdown"
)

// MachineSpec is what a server's computer is made from.
type MachineSpec struct {
	ID       int64
	Name     string
	UserData []byte
	// Image is a stock image's name, such as ubuntu-24.04; empty if Disk is set.
	Image string
	// Disk is what Machine.Snapshot returned; empty for a stock image.
	Disk string
	// IPv4 and IPv6 are its public addresses, not valid where it has none; of IPv6 the first host of its /64.
	IPv4, IPv6 netip.Addr
	// Private are its addresses in the networks that it was ordered with.
	Private []netip.Addr
	// Keys are the registered SSH keys that it was ordered with, in authorized_keys form.
	Keys []string
	// Start is false for a server that stays off at first.
	Start    bool
	Cores    int
	MemoryMB int
	DiskGB   int
}

// Disk is a copy of a machine's disk.
type Disk struct {
	// Handle is what Boot and Rebuild get for a server made from it.
	Handle string
	// SizeGB is what is paid for; zero takes Config.ImageGB.
	SizeGB float32
}
