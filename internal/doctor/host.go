package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Host is the part of the configuration that concerns this host.
type Host struct {
	Data     string            // the data folder
	Secrets  map[string]string // the files of secrets by their keys in the configuration
	Warnings []string          // settings that are probably not intended
	Root     bool              // this process runs as root
	// Free returns the free space of a file system; by default that of the operating system.
	Free func(path string) (Space, error)
	// Integrity checks the store's file; nil if it was not possible to open it.
	Integrity func(context.Context) error
}

// Space is the free space of a file system.
type Space struct {
	Bytes  uint64
	Inodes uint64
	// NoInodes reports that the file system has no fixed number of them.
	NoInodes bool
}

const (
	littleSpace = 2 << 30
	leastSpace  = 200 << 20
	leastInodes = 10_000
)

// HostCheck checks the configuration's warnings, the user, the data folder, the modes of files, the disk and the store.
func HostCheck(h Host) Check {
	if h.Free == nil {
		h.Free = freeSpace
	}
	return func(ctx context.Context) []Finding {
		list := []Finding{}
		for _, w := range h.Warnings {
			list = append(list, Finding{Check: "config", Status: Warning, Found: w, Fix: "Correct the configuration."})
		}
		if len(h.Warnings) == 0 {
			list = append(list, Finding{Check: "config", Status: OK, Found: "The configuration is valid."})
		}
		switch user := h.user(); {
		case h.Root && user != 0:
			list = append(list, Finding{
				Check: "host.user", Status: Note, Found: fmt.Sprintf("root makes these checks, but the data folder belongs to user %d: whether that user can read and write errand's files was not checked.", user),
				Fix: fmt.Sprintf("Run this as that user: `sudo -u '#%d' errand doctor`.", user),
			})
		case h.Root:
			list = append(list, Finding{
				Check: "host.user", Status: Warning, Found: "errand runs as root.",
				Meaning: "A bug in errand, or an escape from a sandbox, has all rights on this host.", Fix: "Create a user: `useradd --system errand`, make it the owner of the data folder, and set `User=errand` in the systemd unit.",
			})
		}
		list = append(list, h.folder()...)
		list = append(list, h.modes()...)
		list = append(list, h.disk())
		return append(list, h.store(ctx))
	}
}

// folder checks the data folder.
func (h Host) folder() []Finding {
	const check = "host.data"
	info, err := os.Stat(h.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := writable(existing(h.Data)); err != nil {
			return []Finding{{
				Check: check, Status: Failed, Found: fmt.Sprintf("The data folder %s does not exist and cannot be created: %v", h.Data, err),
				Meaning: "errand does not start.", Fix: fmt.Sprintf("`install -d -m 700 -o errand %s`, with the user that runs errand.", h.Data),
			}}
		}
		return []Finding{{Check: check, Status: OK, Found: h.Data + " does not exist yet; errand creates it when it starts."}}
	case err != nil:
		return []Finding{{Check: check, Status: Failed, Found: fmt.Sprintf("The data folder cannot be read: %v", err), Meaning: "errand does not start.", Fix: "Run this as the user that runs errand, or make that user the owner of the folder."}}
	case !info.IsDir():
		return []Finding{{Check: check, Status: Failed, Found: h.Data + " is not a folder.", Meaning: "errand does not start.", Fix: "Set data to a folder."}}
	}
	var list []Finding
	if err := writable(h.Data); err != nil {
		list = append(list, Finding{
			Check: check, Status: Failed, Found: fmt.Sprintf("The data folder cannot be written: %v", err), Meaning: "errand cannot store webhooks or tasks.",
			Fix: fmt.Sprintf("`chown -R errand %s`, with the user that runs errand.", h.Data),
		})
		if errors.Is(err, syscall.EROFS) {
			list[0].Fix = "Mount its file system writable, or list the folder in ReadWritePaths of the systemd unit, and check the disk: `dmesg`."
		}
	}
	list = append(list, h.exposed(check, h.Data, info)...)
	if len(list) == 0 {
		list = append(list, Finding{Check: check, Status: OK, Found: h.Data + " can be written."})
	}
	return list
}

// exposed returns that every user of the host has access to a file or folder. Only what belongs to errand's user can be corrected
// safely: errand reads a file of another user perhaps just because everybody can, and other programs may use it too.
func (h Host) exposed(check, path string, info fs.FileInfo) []Finding {
	mode := info.Mode().Perm()
	if mode&0o007 == 0 || !info.Mode().IsRegular() && !info.IsDir() { // a device or a pipe holds nothing
		return nil
	}
	f := Finding{
		Check: check, Status: Warning, Found: fmt.Sprintf("Every user of this host has access to %s (mode %04o).", path, mode),
		Meaning: "Other users and programs can read errand's secrets.",
		Fix:     fmt.Sprintf("`chown errand %s && chmod 0600 %s`, with the user that runs errand, if no other program uses the file.", path, path),
	}
	if info.IsDir() {
		f.Fix = fmt.Sprintf("`chmod 0700 %s` as the owner of the folder.", path)
	}
	if h.own(path) {
		f.Chmod = &Chmod{Path: path, Mode: mode &^ 0o077}
		f.Fix = fmt.Sprintf("`chmod %04o %s`, or run errand doctor with --fix.", f.Chmod.Mode, path)
	}
	return []Finding{f}
}

// user returns the user who runs errand: this process's user, or the owner of the data folder if root examines it.
func (h Host) user() int {
	user := os.Geteuid()
	if data, err := os.Stat(h.Data); err == nil && user == 0 {
		user, _ = owner(data)
	}
	return user
}

// own reports whether a path is a file with this one name, or a folder, of errand's user. A symbolic link is not.
func (h Host) own(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	uid, links := owner(info)
	return uid == h.user() && (info.IsDir() || info.Mode().IsRegular() && links == 1)
}

// FixModes revokes other users' access to the data folder and to secret files that errand's user owns, and returns the changes.
func (h Host) FixModes() ([]Chmod, error) {
	var done []Chmod
	for _, f := range append(h.folder(), h.modes()...) {
		if f.Chmod == nil {
			continue
		}
		if err := h.chmod(*f.Chmod); err != nil {
			return done, fmt.Errorf("correct the mode of %s: %w", f.Chmod.Path, err)
		}
		done = append(done, *f.Chmod)
	}
	return done, nil
}

// chmod changes the mode of the file that is at a path now, unless it was replaced by one that is not errand's own.
func (h Host) chmod(c Chmod) error {
	file, err := os.OpenFile(c.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	opened, err := file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(c.Path); err != nil || !h.own(c.Path) || !os.SameFile(there, opened) {
		return errors.New("the file was replaced meanwhile")
	}
	return file.Chmod(c.Mode)
}

// existing returns the nearest folder above a path, or the path itself, that exists.
func existing(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// modes checks whether other users can read secrets.
func (h Host) modes() []Finding {
	const check = "host.secrets"
	files := maps.Clone(h.Secrets)
	if files == nil {
		files = map[string]string{}
	}
	for _, own := range []string{"errand.db", "client_key", "tether_key", "host_keys_secret"} {
		files[filepath.Join("data", own)] = filepath.Join(h.Data, own)
	}
	var list []Finding
	for _, key := range slices.Sorted(maps.Keys(files)) {
		info, err := os.Stat(files[key])
		switch {
		case errors.Is(err, fs.ErrNotExist): // an own file that is not there yet; loading the configuration has read the others
		case err != nil:
			list = append(list, Finding{Check: check, Status: Skipped, Found: fmt.Sprintf("%s: %v", key, err)})
		default:
			list = append(list, h.exposed(check, files[key], info)...)
		}
	}
	if len(list) == 0 {
		list = append(list, Finding{Check: check, Status: OK, Found: "Only errand's user and group can read its secrets."})
	}
	return list
}

// disk checks the free space for the data folder.
func (h Host) disk() Finding {
	f := Finding{Check: "host.disk", Status: OK}
	path := existing(h.Data)
	space, err := h.Free(path)
	if err != nil {
		f.Status, f.Found = Skipped, fmt.Sprintf("The free space of %s could not be read: %v", path, err)
		return f
	}
	f.Found = fmt.Sprintf("%.1f GB are free for %s.", float64(space.Bytes)/1e9, h.Data)
	f.Fix = "Free space, or move data to a larger disk; keep.transcripts and keep.after_end decide how much errand keeps."
	switch {
	case space.Bytes < leastSpace:
		f.Status, f.Meaning = Failed, "When the disk is full, errand answers webhooks with 500 and starts nothing."
	case !space.NoInodes && space.Inodes < leastInodes:
		f.Status, f.Meaning = Failed, "No more files can be created soon, although there is space."
		f.Found = fmt.Sprintf("The file system of %s has only %d inodes left.", h.Data, space.Inodes)
	case space.Bytes < littleSpace:
		f.Status, f.Meaning = Warning, "Transcripts, archives and sandboxes need space; one task can use several hundred megabytes."
	default:
		f.Fix = ""
	}
	return f
}

func (h Host) store(ctx context.Context) Finding {
	f := Finding{Check: "host.store", Status: OK, Found: "The store's file is intact."}
	if h.Integrity == nil {
		f.Status, f.Found = Skipped, "There is no store yet."
		return f
	}
	err := h.Integrity(ctx)
	switch {
	case errors.Is(err, ErrInUse):
		f.Status, f.Found = Failed, "An errand process has the store open, but does not answer at its address."
		f.Meaning, f.Fix = "errand is starting, hangs, or was started with another configuration.", "Name its configuration with -c; if that is this one, restart errand: `systemctl restart errand`."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		f.Status, f.Found = Skipped, "The store's file is too large to be read in the time of a check."
	case errors.Is(err, fs.ErrPermission):
		f.Status, f.Found = Failed, fmt.Sprintf("This user cannot read the store's file: %v", err)
		f.Meaning, f.Fix = "Whether it is intact is not known; errand does not start as this user.", fmt.Sprintf("Run this as the user that runs errand, or make that user the owner: `chown -R errand %s`.", h.Data)
	case err != nil:
		f.Status, f.Found = Failed, fmt.Sprintf("The store's file is damaged or cannot be read: %v", err)
		f.Meaning, f.Fix = "errand may lose tasks or not start.", "Stop errand, keep a copy of the data folder, and restore a backup (docs/backup.md); then check the disk."
	}
	return f
}

// ErrInUse is the error of Host.Integrity for a store that a process has open.
var ErrInUse = errors.New("a process has the store open")

// Programs are the agents' programs on this host, for sandboxes.
type Programs struct {
	// Commands are the programs by the names of their adapters.
	Commands map[string]string
	// Path is searched before PATH, as in sandboxes.
	Path []string
}

// programTimeout bounds the start of a program.
const programTimeout = 15 * time.Second

// ProgramCheck checks whether the agents' programs are installed on this host, and prints their versions.
func ProgramCheck(p Programs) Check {
	return func(ctx context.Context) []Finding {
		var list []Finding
		for _, adapter := range slices.Sorted(maps.Keys(p.Commands)) {
			list = append(list, p.check(ctx, adapter, p.Commands[adapter]))
		}
		return list
	}
}

func (p Programs) check(ctx context.Context, adapter, program string) Finding {
	f := Finding{Check: "agent." + adapter, Status: OK}
	path, err := p.find(program)
	if err != nil {
		f.Status, f.Found = Failed, fmt.Sprintf("The program %s is not installed: %v", program, err)
		f.Meaning, f.Fix = "Agents cannot start.", fmt.Sprintf("Install %s where sandboxes see it (under /usr, or in a folder of local.path and local.binds), or set agent.command.", program)
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	line, err := version(ctx, path)
	if err != nil {
		f.Status, f.Found = Warning, fmt.Sprintf("%s --version failed: %v: %s", path, err, line)
		f.Meaning, f.Fix = "Agents may not start.", fmt.Sprintf("Run `%s --version` as errand's user, and install it again.", path)
		return f
	}
	f.Found = fmt.Sprintf("%s: %s", path, line)
	return f
}

// versionLimit is the length of a program's output that is read, in bytes.
const versionLimit = 200

// version returns the first line that a program prints with --version. The program gets none of errand's environment, which may
// hold secrets, and its own home, so that it leaves nothing behind. Its children end with it.
func version(ctx context.Context, path string) (_ string, err error) {
	home, err := os.MkdirTemp("", "errand-doctor-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Dir, cmd.Env = home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	var out head
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left in the background
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return strings.ToValidUTF8(line, ""), err
}

// head keeps the beginning of what is written to it.
type head []byte

func (h *head) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), versionLimit-len(*h))]...)
	return len(p), nil
}

// find searches a program as a sandbox does.
func (p Programs) find(program string) (string, error) {
	if !strings.Contains(program, "/") {
		for _, dir := range p.Path {
			if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
				return path, nil
			}
		}
	}
	return exec.LookPath(program)
}
