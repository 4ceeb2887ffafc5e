// Package box simulates a VM on the local host, from inside the process that keeps it: a supervisor that owns a
// sandbox's directory, and the SSH server that runs in the sandbox.
//
// A sandbox ("box" in the code) is a directory. Its supervisor holds the lock in it; a sandbox whose lock is free is
// dead. The supervisor is detached from the process that started it. It listens on the sandbox's SSH socket and on a
// control socket, starts the inside (with bubblewrap, user namespaces, or no isolation) with the listener, and ends it
// on request or after a time without contact. It writes the reason to the directory before it releases the lock.
//
// The package is linked into the small errand-runner binary and therefore does not depend on package fleet or a store.
//
// Start here: [Supervise] and [ServeSSH]. Package local is the other side.
package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/durable"
)

// Kinds of sandboxes, best first.
const (
	// KindBwrap has separate files, processes and network, created by bubblewrap.
	KindBwrap = "bwrap"
	// KindUserns has separate files, processes and network in user namespaces created by this package: like bwrap, for
	// hosts without bubblewrap, but without terminals and without bubblewrap's review by others.
	KindUserns = "userns"
	// KindPlain is a directory without any isolation from the host.
	KindPlain = "plain"
)

// Files in a sandbox's directory.
const (
	recordFile  = "box.json"
	endFile     = "end.json"
	startedFile = "started"
	lockFile    = "lock"
	hostKeyFile = "host_key"
	logFile     = "supervisor.log"
	homeDir     = "home"
	tmpDir      = "tmp"
)

// InsideHome is the home of an isolated sandbox, as seen inside it.
const (
	InsideHome   = "/home/agent"
	insideRunner = "/opt/errand/errand-runner"
)

// User is the login name in every sandbox.
const User = "agent"

// Bind is a host path that a sandbox may use at the same path.
type Bind struct {
	Path string `json:"path"`
	// Writable shares the path for writing, such as a download cache.
	Writable bool `json:"writable,omitempty"`
}

// Record is the definition of a sandbox, written once before its supervisor starts.
type Record struct {
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Kind      string            `json:"kind"`
	CreatedAt time.Time         `json:"created_at"`
	// HostKey and ClientKey are public keys in authorized_keys form.
	HostKey   string `json:"host_key"`
	ClientKey string `json:"client_key"`
	// SSHSocket and ControlSocket are absolute paths; they are outside the sandbox's directory if its path is too long
	// for a socket.
	SSHSocket     string `json:"ssh_socket"`
	ControlSocket string `json:"control_socket"`
	// TetherPort is the loopback port for the VM side of the tether.
	TetherPort int `json:"tether_port"`
	// Runner is the errand-runner binary on the host.
	Runner string `json:"runner"`
	// Path is prepended to the system's directories in PATH.
	Path  []string `json:"path,omitempty"`
	Binds []Bind   `json:"binds,omitempty"`
	// Disk is a host directory that outlives the sandbox and contains its home and its host key, which the sandbox
	// itself may replace; see [NewDisk]. If it is empty, both are in the sandbox's directory. Sandboxes with a disk
	// simulate cloud VMs.
	Disk string `json:"disk,omitempty"`
	// Bounds limit the sandbox's use of the host; zero values are defaults.
	Bounds Bounds `json:"bounds,omitzero"`
	// IdleExit is the time without contact after which the sandbox ends.
	IdleExit time.Duration `json:"idle_exit"`
}

// End is how a sandbox ended.
type End struct {
	// Reason is one of package fleet's reasons.
	Reason string    `json:"reason"`
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// Reasons that the supervisor determines.
const (
	ReasonIdle    = "idle"
	ReasonCrashed = "crashed"
	ReasonStopped = "host_stopped"
)

// WriteRecord stores the record in dir, atomically.
func WriteRecord(dir string, rec Record) error { return writeJSON(filepath.Join(dir, recordFile), rec) }

// ReadRecord reads what WriteRecord stored.
func ReadRecord(dir string) (Record, error) {
	var rec Record
	err := readJSON(filepath.Join(dir, recordFile), &rec)
	return rec, err
}

// ReadEnd returns how the sandbox of dir ended; ok is false if that was not recorded.
func ReadEnd(dir string) (end End, ok bool, err error) {
	err = readJSON(filepath.Join(dir, endFile), &end)
	if errors.Is(err, fs.ErrNotExist) {
		return End{}, false, nil
	}
	return end, err == nil, err
}

// Started reports whether a supervisor ever held the sandbox.
func Started(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, startedFile))
	return err == nil
}

// LockPath is the file whose lock the supervisor holds while it lives.
func LockPath(dir string) string { return filepath.Join(dir, lockFile) }

// LogPath is the log of the supervisor and the inside.
func LogPath(dir string) string { return filepath.Join(dir, logFile) }

// HostKeyPath is the private host key in PEM form. Inside it is only visible in a plain sandbox.
func HostKeyPath(dir string) string { return filepath.Join(dir, hostKeyFile) }

// HomePath is the host's path of the sandbox's home.
func HomePath(dir string) string { return filepath.Join(dir, homeDir) }

// TmpPath is the host's path of the sandbox's directory for temporary files.
func TmpPath(dir string) string { return filepath.Join(dir, tmpDir) }

// RunnerInside returns the path of the errand-runner binary inside the sandbox.
func (r Record) RunnerInside() string {
	if ownFiles(r.Kind) {
		return insideRunner
	}
	return r.Runner
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return durable.WriteFile(path, append(data, '\n'), 0o600)
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decode %s: %w", filepath.Base(path), err)
	}
	return nil
}
