// Package box is a VM's stand-in on the local host, seen from inside the process
// that keeps it: a supervisor that owns a box's directory, and the SSH server
// that runs in the box.
//
// A box is a directory. Who holds the lock in it is its supervisor, and a box
// whose lock is free is dead. The supervisor is detached from whoever started it,
// listens on the box's SSH socket and on a control socket, starts the inside
// (bubblewrap, user namespaces, or nothing around it) with the listener handed
// over, and ends it when told or after a time without contact. The reason is
// written to the directory before the lock is given back.
//
// The package is linked into the small errand-runner binary and therefore knows
// neither package fleet nor any store. Start reading at Supervise and ServeSSH;
// package local is the other side.
package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Kinds of boxes, best first.
const (
	// KindBwrap has its own files, processes and network (bubblewrap).
	KindBwrap = "bwrap"
	// KindUserns has its own files, processes and network, put up by ourselves in user namespaces: as bwrap,
	// for hosts without bubblewrap, but without terminals and without its hardening by others' eyes.
	KindUserns = "userns"
	// KindPlain is a directory: nothing keeps its processes from the host.
	KindPlain = "plain"
)

// Files of a box's directory.
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

// InsideHome is the home of a box with its own files, as the box sees it.
const (
	InsideHome   = "/home/agent"
	insideRunner = "/opt/errand/errand-runner"
)

// User is the login name in every box.
const User = "agent"

// Bind is a host path that a box may use at the same path.
type Bind struct {
	Path string `json:"path"`
	// Writable shares the path for writing, such as a download cache.
	Writable bool `json:"writable,omitempty"`
}

// Record is what a box is, written once before its supervisor starts.
type Record struct {
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
	Kind      string            `json:"kind"`
	CreatedAt time.Time         `json:"created_at"`
	// HostKey and ClientKey are public keys in authorized_keys form.
	HostKey   string `json:"host_key"`
	ClientKey string `json:"client_key"`
	// SSHSocket and ControlSocket are absolute; they lie outside the box's
	// directory if its path is too long for a socket.
	SSHSocket     string `json:"ssh_socket"`
	ControlSocket string `json:"control_socket"`
	// TetherPort is the loopback port for the tether's VM end.
	TetherPort int `json:"tether_port"`
	// Runner is the errand-runner binary on the host.
	Runner string `json:"runner"`
	// Path is put before the system's directories in PATH.
	Path  []string `json:"path,omitempty"`
	Binds []Bind   `json:"binds,omitempty"`
	// Disk is a directory of the host that outlives the box and holds its home and its host key, which the box
	// itself may replace: see NewDisk. Empty: both lie in the box's own directory. Such a box stands in for a
	// VM of a cloud.
	Disk string `json:"disk,omitempty"`
	// Bounds are what the box may use of the host; zero values are defaults.
	Bounds Bounds `json:"bounds,omitzero"`
	// IdleExit is the time without contact after which the box ends.
	IdleExit time.Duration `json:"idle_exit"`
}

// End is how a box ended.
type End struct {
	// Reason is one word of package fleet's closed list.
	Reason string    `json:"reason"`
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// Reasons that the supervisor finds by itself.
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

// ReadEnd says how the box of dir ended; ok is false if nobody wrote it down.
func ReadEnd(dir string) (end End, ok bool, err error) {
	err = readJSON(filepath.Join(dir, endFile), &end)
	if errors.Is(err, fs.ErrNotExist) {
		return End{}, false, nil
	}
	return end, err == nil, err
}

// Started reports whether a supervisor ever held the box.
func Started(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, startedFile))
	return err == nil
}

// LockPath is the file whose lock the box's supervisor holds for its life.
func LockPath(dir string) string { return filepath.Join(dir, lockFile) }

// LogPath is where the supervisor and the inside write what goes wrong.
func LogPath(dir string) string { return filepath.Join(dir, logFile) }

// HostKeyPath is the private host key in PEM form. It is visible in a plain box only.
func HostKeyPath(dir string) string { return filepath.Join(dir, hostKeyFile) }

// HomePath is the host's view of the box's home.
func HomePath(dir string) string { return filepath.Join(dir, homeDir) }

// TmpPath is the host's view of the box's directory for temporary files.
func TmpPath(dir string) string { return filepath.Join(dir, tmpDir) }

// RunnerInside is the path of the errand-runner binary as the box sees it.
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
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
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
