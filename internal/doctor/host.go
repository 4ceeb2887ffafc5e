package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/errand-bot/errand/internal/remote"
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
			list = append(list, Finding{Check: "config", Status: Warning, Found: w, Meaning: "The setting is probably not what you intend.", Fix: "Change it in the configuration, and restart errand."})
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
				Meaning: "errand does not start.", Fix: fmt.Sprintf("`sudo install -d -m 0700 -o %s %s`.", h.account(), remote.Quote(h.Data)),
			}}
		}
		return []Finding{{Check: check, Status: OK, Found: h.Data + " does not exist yet; errand creates it when it starts."}}
	case err != nil:
		return []Finding{{Check: check, Status: Failed, Found: fmt.Sprintf("The data folder cannot be read: %v", err), Meaning: "errand does not start.", Fix: "Run this as the user that runs errand, or make that user the owner of the folder."}}
	case !info.IsDir():
		return []Finding{{Check: check, Status: Failed, Found: h.Data + " is not a folder.", Meaning: "errand does not start.", Fix: "Set data to a folder, and restart errand."}}
	}
	var list []Finding
	if f := h.closed(h.Data, info); f != nil {
		list = append(list, *f)
	} else if err := writable(h.Data); err != nil {
		list = append(list, Finding{
			Check: check, Status: Failed, Found: fmt.Sprintf("The data folder cannot be written: %v", err), Meaning: "errand cannot store webhooks or tasks.",
			Fix: "Check the rights to the folders above it, and the disk: `dmesg`.",
		})
		if errors.Is(err, syscall.EROFS) {
			list[0].Fix = "Mount its file system writable, or list the folder in ReadWritePaths of the systemd unit, and check the disk: `dmesg`."
		}
	}
	if len(list) == 0 {
		list = append(list, h.unusable()...)
	}
	list = append(list, h.exposed(check, h.Data, info)...)
	if len(list) == 0 {
		list = append(list, Finding{Check: check, Status: OK, Found: h.Data + " can be written."})
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
		f.Meaning = "Whether it is intact is not known; errand does not start as this user."
		f.Fix = fmt.Sprintf("Run this as the user that runs errand, or make this user the owner: `sudo chown -R %s %s`.", h.account(), remote.Quote(h.Data))
	case err != nil:
		f.Status, f.Found = Failed, fmt.Sprintf("The store's file is damaged or cannot be read: %v", err)
		f.Meaning, f.Fix = "errand may lose tasks or not start.", "Stop errand and restore the newest backup: `errand restore --force FILE`, which keeps the present files in a folder of their own (docs/backup.md). Then check the disk: `dmesg`."
	}
	return f
}

// ErrInUse is the error of Host.Integrity for a store that a process has open.
var ErrInUse = errors.New("a process has the store open")
