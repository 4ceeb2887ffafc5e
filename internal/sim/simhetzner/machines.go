package simhetzner

import (
	"context"
	"net/netip"
	"time"
)

// machineTimeout limits every Machine operation.
const machineTimeout = 5 * time.Minute

// Machines provides computers for the servers. The implementation decides how they are reached; it gets each server's
// addresses. Implementations are safe for concurrent use.
type Machines interface {
	// Boot creates the computer of a new server and, if spec.Start, starts it before it returns. An error makes the
	// action start_server (or create_server) fail.
	Boot(ctx context.Context, spec MachineSpec) (Machine, error)
	// DeleteDisk deletes a disk returned by Machine.Snapshot.
	DeleteDisk(ctx context.Context, handle string) error
}

// Machine is one computer. Its methods are never called concurrently, except that Delete may be called at any time.
type Machine interface {
	// Power switches it on or off. PowerShutdown returns when it is off, or an error if it ignores the request.
	Power(ctx context.Context, op PowerOp) error
	// Snapshot copies its disk.
	Snapshot(ctx context.Context) (Disk, error)
	// Rebuild gives it a fresh disk and starts it, like Boot.
	Rebuild(ctx context.Context, spec MachineSpec) error
	// Delete deletes it with its disk. Deleting it again is not an error.
	Delete(ctx context.Context) error
}

// PowerOp is an operation of Machine.Power.
type PowerOp string

// Power operations.
const (
	PowerOn       PowerOp = "on"
	PowerOff      PowerOp = "off"
	PowerShutdown PowerOp = "shutdown"
)

// MachineSpec describes a server's computer.
type MachineSpec struct {
	ID       int64
	Name     string
	UserData []byte
	// Image is a stock image's name, such as ubuntu-24.04; empty if Disk is set.
	Image string
	// Disk is a handle returned by Machine.Snapshot; empty for a stock image.
	Disk string
	// IPv4 and IPv6 are its public addresses, invalid if it has none; for IPv6 the first host of its /64.
	IPv4, IPv6 netip.Addr
	// Private are its addresses in the networks it was ordered with.
	Private []netip.Addr
	// Keys are the SSH keys it was ordered with, in authorized_keys form.
	Keys []string
	// Start is false for a server that stays off at first.
	Start    bool
	Cores    int
	MemoryMB int
	DiskGB   int
}

// Disk is a copy of a machine's disk.
type Disk struct {
	// Handle is passed to Boot and Rebuild for a server created from it.
	Handle string
	// SizeGB is the billed size; zero means Config.ImageGB.
	SizeGB float32
}
