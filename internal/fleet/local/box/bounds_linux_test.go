package box

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCgroupParents: where a group may be made depends on the version, and with version 2 on which controllers are
// handed down. M stands for the place where the file system is mounted.
func TestCgroupParents(t *testing.T) {
	t.Parallel()
	const v2 = "29 23 0:26 / M rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	tests := map[string]struct {
		groups, mounts string
		enabled        map[string]string // cgroup.subtree_control by directory
		available      map[string]string // cgroup.controllers by directory
		want           []string
	}{
		"version 1": {
			groups: "8:pids:/x\n4:memory,cpu:/a/b\n0::/\n",
			mounts: "36 31 0:34 / M rw - cgroup cgroup rw,memory,cpu\n37 31 0:35 / /elsewhere rw - cgroup cgroup rw,pids\n",
			want:   []string{"M/a/b"},
		},
		"version 1 in a container": {
			groups: "4:memory:/docker/1/a\n", mounts: "36 31 0:34 /docker/1 M ro - cgroup cgroup rw,memory\n", want: []string{"M/a"},
		},
		"version 1 of somebody else": {groups: "4:memory:/docker/12\n", mounts: "36 31 0:34 /docker/1 M rw - cgroup cgroup rw,memory\n"},
		"next to errand's service": {
			groups: "0::/system.slice/errand.service\n", mounts: v2,
			enabled: map[string]string{"system.slice": "cpu memory pids\n", "system.slice/errand.service": "\n"}, want: []string{"M/system.slice"},
		},
		"delegated, errand in a part of its own": {
			groups: "0::/system.slice/errand.service/errand\n", mounts: v2,
			enabled: map[string]string{"system.slice/errand.service": "\n"}, available: map[string]string{"system.slice/errand.service": "cpu memory pids\n"},
			want: []string{"M/system.slice/errand.service"},
		},
		"not handed down": {
			groups: "0::/user.slice/one.scope\n", mounts: v2, enabled: map[string]string{"user.slice": "pids hugetlb\n"},
		},
		"at the root": {groups: "0::/\n", mounts: v2, enabled: map[string]string{"": "memory pids\n"}, want: []string{"M"}},
		"hybrid, controllers with version 1": {
			groups: "4:memory:/\n0::/\n", mounts: v2 + "36 31 0:34 / /one rw - cgroup cgroup rw,memory\n", enabled: map[string]string{"": "hugetlb\n"}, want: []string{"/one"},
		},
		"nothing mounted": {groups: "0::/x\n"},
		"no groups":       {mounts: v2},
		"broken lines":    {groups: "x\n::\n0::\n", mounts: "x\n - cgroup2\n1 2 3 - cgroup2 a b\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mount := t.TempDir()
			for file, contents := range map[string]map[string]string{"cgroup.subtree_control": test.enabled, "cgroup.controllers": test.available} {
				for dir, text := range contents {
					if err := os.MkdirAll(filepath.Join(mount, dir), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(mount, dir, file), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			var got []string
			for _, dir := range cgroupParents("memory", test.groups, strings.ReplaceAll(test.mounts, " M ", " "+mount+" ")) {
				got = append(got, strings.Replace(dir, mount, "M", 1))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSweepCgroups: groups left by a killed supervisor are removed, but not those that another one is about to use.
func TestSweepCgroups(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"errand-box-old", "errand-box-young", "errand-box-used", "other"} {
		if err := os.MkdirAll(filepath.Join(parent, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(parent, "errand-box-used", "process"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"errand-box-old", "errand-box-used", "other"} {
		if err := os.Chtimes(filepath.Join(parent, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	sweepCgroups(parent)
	left, err := filepath.Glob(filepath.Join(parent, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if diff := cmp.Diff([]string{"errand-box-used", "errand-box-young", "other"}, left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCgroupName(t *testing.T) {
	t.Parallel()
	one := cgroupName(Record{Name: "a"}, "/x/a")
	if one == cgroupName(Record{Name: "a"}, "/y/a") || one != cgroupName(Record{Name: "a"}, "/x/a") || !strings.HasPrefix(one, "errand-box-a-") {
		t.Errorf("got name %q", one)
	}
}

// TestWatchMemory ends the larger one of two programs, and no other process.
func TestWatchMemory(t *testing.T) {
	t.Parallel()
	script := func(bytes string) string {
		return "{ head -c " + bytes + " /dev/zero; while printf x; do sleep 0.05; done; } 2>/dev/null | tail >/dev/null; echo $?"
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "("+script("20000000")+") >/dev/null & ("+script("150000000")+"); kill -0 $! && echo lives")
	var out strings.Builder
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go watchMemory(ctx, cmd.Process.Pid, 100<<20)
	_ = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if got := out.String(); !strings.HasPrefix(got, "137\nlives\n") {
		t.Errorf("got %q", got)
	}
}

func TestBoundsHaveDefaults(t *testing.T) {
	t.Parallel()
	got := Bounds{}.orDefault()
	if got.Processes != 4096 || got.Memory <= 0 || got.Memory >= hostMemory() {
		t.Errorf("%+v of %d bytes", got, hostMemory())
	}
	if want := (Bounds{Processes: 5, Memory: 6}); want.orDefault() != want {
		t.Errorf("%+v", want.orDefault())
	}
}
