package box

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupPrefix = "errand-box-"
	// cgroupYoung is well over the time from making a group to its first process.
	cgroupYoung = time.Minute
	// cgroupPatience is how long the kernel may take to let go of a group whose processes are dead.
	cgroupPatience = time.Second
)

// cgroup is a box's control group: one directory, or with version 1 one for each controller. It may bound less
// than it should; what it does not bound has to be bounded otherwise. The zero value bounds nothing.
type cgroup struct {
	dirs  map[string]string // by controller
	named []string          // each directory once
}

func (g *cgroup) has(controller string) bool { return g.dirs[controller] != "" }

// cgroupName is the same for each start of a box, and another one for each box of this host.
func cgroupName(rec Record, dir string) string {
	return fmt.Sprintf("%s%s-%x", cgroupPrefix, rec.Name, sha256.Sum256([]byte(dir)))[:len(cgroupPrefix)+len(rec.Name)+9]
}

// newCgroup makes a control group beneath errand's own or, where version 2 wants no processes beside groups, beside it.
// That takes root, or a part of the tree that somebody else has given to errand's user.
func newCgroup(name string, b Bounds) *cgroup {
	g := &cgroup{dirs: map[string]string{}}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return g
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return g
	}
	memory := strconv.FormatInt(b.Memory, 10)
	for _, limit := range []struct {
		controller      string
		files, optional []string
		value           string
	}{
		{"memory", []string{"memory.max", "memory.limit_in_bytes"}, []string{"memory.swap.max=0", "memory.memsw.limit_in_bytes=" + memory}, memory},
		{"pids", []string{"pids.max"}, nil, strconv.Itoa(b.Processes + spareProcesses)},
	} {
		for _, parent := range cgroupParents(limit.controller, string(text), string(mounts)) {
			sweepCgroups(parent)
			dir := filepath.Join(parent, name)
			if !g.add(dir) {
				continue
			}
			if slices.ContainsFunc(limit.files, func(file string) bool { return writeExisting(filepath.Join(dir, file), limit.value) == nil }) {
				g.dirs[limit.controller] = dir
				for _, setting := range limit.optional { // without swap, or with a kernel that does not account it
					file, value, _ := strings.Cut(setting, "=")
					_ = writeExisting(filepath.Join(dir, file), value)
				}
				break
			}
		}
	}
	return g
}

// add makes a directory unless this group has it.
func (g *cgroup) add(dir string) bool {
	if slices.Contains(g.named, dir) {
		return true
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return false
	}
	g.named = append(g.named, dir)
	return true
}

// take puts a process and its descendants into the group. Those that they start meanwhile follow: a process is put in
// before its children are looked for.
func (g *cgroup) take(pid int) error {
	for _, dir := range g.named {
		done := map[int]bool{}
		for {
			var next []int
			for _, p := range append([]int{pid}, descendants(pid)...) {
				if !done[p] {
					next = append(next, p)
				}
			}
			if len(next) == 0 {
				break
			}
			for _, p := range next {
				done[p] = true
				if err := writeExisting(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(p)); err != nil && !errors.Is(err, unix.ESRCH) {
					return fmt.Errorf("put process %d into %s: %w", p, dir, err)
				}
			}
		}
	}
	return nil
}

// remove removes the group, whose processes have to be dead. What cannot be removed is swept by later boxes.
func (g *cgroup) remove() {
	deadline := time.Now().Add(cgroupPatience)
	for _, dir := range g.named {
		for os.Remove(dir) != nil && exists(dir) && time.Now().Before(deadline) {
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 5e6}, nil)
		}
	}
	g.dirs, g.named = nil, nil
}

// sweepCgroups removes the groups of boxes whose supervisor was killed. The kernel keeps those that have processes.
func sweepCgroups(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > cgroupYoung {
			_ = os.Remove(dir)
		}
	}
}

// handsDown reports whether groups beneath a directory of version 2 have a controller, which it hands down from now on
// if it can. systemd leaves that to whom it delegates a part of the tree.
func handsDown(dir, controller string) bool {
	control := filepath.Join(dir, "cgroup.subtree_control")
	lists := func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && slices.Contains(strings.Fields(string(text)), controller)
	}
	return lists(control) || lists(filepath.Join(dir, "cgroup.controllers")) && writeExisting(control, "+"+controller) == nil
}

// cgroupParents are where a group with a controller may be made, best first, by the contents of /proc/self/cgroup and
// /proc/self/mountinfo.
func cgroupParents(controller, groups, mounts string) []string {
	for line := range strings.Lines(groups) { // "4:memory:/path", and "0::/path" for version 2
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			if _, own := cgroupDir(mounts, "cgroup", controller, fields[2]); own != "" {
				return []string{own}
			}
		}
	}
	for line := range strings.Lines(groups) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		mount, own := cgroupDir(mounts, "cgroup2", "", path)
		var parents []string
		for _, dir := range []string{own, filepath.Dir(own)} {
			if own == "" || dir != mount && !strings.HasPrefix(dir, mount+"/") {
				continue
			}
			if handsDown(dir, controller) {
				parents = append(parents, dir)
			}
		}
		return parents
	}
	return nil
}

// cgroupDir finds the directory of a group's path, and where the file system that it lies in is mounted.
func cgroupDir(mounts, kind, option, path string) (mount, dir string) {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(rest) < 3 || rest[0] != kind || option != "" && !slices.Contains(strings.Split(rest[2], ","), option) {
			continue
		}
		root := strings.TrimSuffix(fields[3], "/")
		if below, ok := strings.CutPrefix(path, root); ok && (below == "" || below[0] == '/') {
			return fields[4], filepath.Join(fields[4], below)
		}
	}
	return "", ""
}

// writeExisting writes to a file that the kernel has made.
func writeExisting(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
