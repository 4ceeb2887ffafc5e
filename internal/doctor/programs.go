package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"
)

// Programs are the agents' programs on this host, for sandboxes.
type Programs struct {
	// Commands are the programs by the names of their adapters.
	Commands map[string]string
	// Tested are the versions with which errand is tested, by the names of the adapters.
	Tested map[string]string
	// Path is searched before PATH, as in sandboxes.
	Path []string
	// Visible are the folders that sandboxes see. Nil means everything, because sandboxes do not isolate files.
	Visible []string
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
		f.Meaning, f.Fix = "Agents cannot start.", installVisibly(program)
		return f
	}
	if p.isHidden(path) {
		f.Status, f.Found = Failed, fmt.Sprintf("The program %s is only installed at %s, which sandboxes do not see.", program, path)
		f.Meaning, f.Fix = "Agents cannot start.", installVisibly(program)
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
	if installed, tested := "v"+versionNumber.FindString(line), "v"+p.Tested[adapter]; semver.IsValid(installed) && semver.IsValid(tested) && semver.Compare(installed, tested) < 0 {
		f.Status, f.Found = Note, fmt.Sprintf("%s is older than %s, with which errand is tested.", f.Found, p.Tested[adapter])
		f.Fix = "If agents do not start, or their output is not understood, update " + program + "."
	}
	return f
}

// versionNumber is a version in what a program prints.
var versionNumber = regexp.MustCompile(`\d+\.\d+\.\d+`)

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

func installVisibly(program string) string {
	return fmt.Sprintf("Install %s where sandboxes see it (under /usr, or in a folder of local.path and local.binds), or set agent.command.", program)
}

// find searches a program as a sandbox does, and then where sandboxes that isolate files do not see it.
func (p Programs) find(program string) (string, error) {
	hidden := ""
	if !strings.Contains(program, "/") {
		for _, dir := range append(slices.Clone(p.Path), "/usr/local/bin", "/usr/bin") {
			path, err := exec.LookPath(filepath.Join(dir, program))
			switch {
			case err == nil && !p.isHidden(path):
				return path, nil
			case err == nil:
				hidden = path
			}
		}
	}
	path, err := exec.LookPath(program)
	if err != nil && hidden != "" {
		return hidden, nil
	}
	return path, err
}

// isHidden reports whether sandboxes do not see a program, or what a symbolic link to it leads to.
func (p Programs) isHidden(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if p.Visible == nil || err != nil {
		return false
	}
	return !slices.ContainsFunc(p.Visible, func(dir string) bool {
		if target, err := filepath.EvalSymlinks(dir); err == nil {
			dir = target
		}
		return strings.HasPrefix(real, strings.TrimSuffix(dir, "/")+"/")
	})
}
