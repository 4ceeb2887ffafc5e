//go:build linux

package secrets_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The places on a VM.
const (
	inFile        = "VM: file"
	inEnvironment = "VM: environment"
	inMemory      = "VM: memory"
)

// Order holds the fingerprints for the search on a VM. Files older than Since cannot contain a secret of this life.
type Order struct {
	Index Index
	Since time.Time
}

// Sight is the result of the search on a VM.
type Sight struct {
	Found []Hit
	// Files, Processes and Bytes were searched; Closed lists unreadable things with the reason.
	Files, Processes int
	Bytes            int64
	Closed           []string
}

// Hit is a secret that was found.
type Hit struct{ Place, Where, Name string }

// looker searches everything that its user can read on its machine.
type looker struct {
	Sight
	since time.Time
	find  *finder
}

// look is this program's role on a VM: look ORDER SIGHT, both files.
func look(args []string) error {
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var o Order
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	l := looker{since: o.Since, find: o.Index.finder()}
	l.files("/", args[0])
	l.processes()
	if data, err = json.Marshal(l.Sight); err != nil {
		return err
	}
	return os.WriteFile(args[1], data, 0o600)
}

func (l *looker) search(place, where string, data []byte) {
	l.Bytes += int64(len(data))
	for _, name := range l.find.search(data) {
		l.Found = append(l.Found, Hit{place, where, name})
	}
}

func (l *looker) closed(what string, err error) {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) { // deleted meanwhile
		l.Closed = append(l.Closed, fmt.Sprintf("%s: %v", what, err))
	}
}

// files searches all files below root except one. It skips the host's system, which is shared read-only, and files that
// were not written since this life began.
func (l *looker) files(root, but string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			l.closed(path, err)
		case path == but:
		case d.IsDir():
			if path == "/proc" || path == "/sys" || shared(path) {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			l.file(path, d)
		case d.Type()&fs.ModeSymlink != 0:
			if to, err := os.Readlink(path); err == nil {
				l.search(inFile, path, []byte(to))
			}
		}
		return nil
	})
}

// shared reports whether a directory is the host's, mounted read-only.
func shared(path string) bool {
	const readOnly, tmpfs = 1, 0x01021994
	var st syscall.Statfs_t
	return path != "/" && syscall.Statfs(path, &st) == nil && st.Flags&readOnly != 0 && st.Type != tmpfs
}

func (l *looker) file(path string, d fs.DirEntry) {
	info, err := d.Info()
	if err != nil {
		return
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && time.Unix(st.Ctim.Unix()).Before(l.since) {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		l.closed(path, err)
		return
	}
	l.Files++
	l.search(inFile, path, []byte(path))
	unfold(data, maxDepth, func(b []byte) { l.search(inFile, path, b) })
}

// processes searches the environment, the command line and the memory of every other process.
func (l *looker) processes() {
	list, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return
	}
	for _, dir := range list {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err != nil || pid == os.Getpid() {
			continue
		}
		l.Processes++
		for _, name := range []string{"environ", "cmdline"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				l.closed(filepath.Join(dir, name), err)
			}
			l.search(inEnvironment, l.named(dir), data)
		}
		l.memory(dir)
	}
}

// named returns a readable name of a process.
func (l *looker) named(dir string) string {
	data, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	return fmt.Sprintf("%s (%.80s)", filepath.Base(dir), bytes.ReplaceAll(data, []byte{0}, []byte{' '}))
}

// memory searches every present page of a process, except files mapped read-only, which are searched as files.
func (l *looker) memory(dir string) {
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	if err != nil {
		l.closed(filepath.Join(dir, "maps"), err)
		return
	}
	mem, err := os.Open(filepath.Join(dir, "mem"))
	if err != nil {
		l.closed(filepath.Join(dir, "mem"), err)
		return
	}
	defer func() { _ = mem.Close() }()
	pages, err := os.Open(filepath.Join(dir, "pagemap"))
	if err != nil {
		l.closed(filepath.Join(dir, "pagemap"), err)
		return
	}
	defer func() { _ = pages.Close() }()
	who := l.named(dir)
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		var from, to uint64
		if _, err := fmt.Sscanf(f[0], "%x-%x", &from, &to); err != nil || slices.Contains(f[5:], "[vsyscall]") || slices.Contains(f[5:], "[vvar]") {
			continue
		}
		if f[4] != "0" && !strings.Contains(f[1], "w") {
			continue
		}
		l.mapping(mem, pages, from, to, who)
	}
}

// huge is the size of the race detector's mappings, which contain no copies of data.
const huge = 4 << 30

func (l *looker) mapping(mem, pages *os.File, from, to uint64, who string) {
	if to-from > huge {
		return
	}
	size := uint64(os.Getpagesize())
	entries := make([]byte, (to-from)/size*8)
	n, err := pages.ReadAt(entries, int64(from/size*8))
	if err != nil && !errors.Is(err, io.EOF) {
		l.closed("pages of "+who, err)
		return
	}
	present := func(i int) bool { return binary.LittleEndian.Uint64(entries[i*8:])>>62 != 0 } // present or swapped out
	for i := 0; i < n/8; {
		j := i
		for j < n/8 && present(j) {
			j++
		}
		if j > i {
			data := make([]byte, uint64(j-i)*size)
			k, err := mem.ReadAt(data, int64(from+uint64(i)*size))
			if err != nil && k == 0 {
				l.closed(fmt.Sprintf("%#x of %s", from, who), err)
			}
			l.search(inMemory, who, data[:k])
		}
		i = j + 1
	}
}
