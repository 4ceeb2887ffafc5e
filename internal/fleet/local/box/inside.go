package box

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// HomeInside returns the home inside the sandbox of dir.
func (r Record) HomeInside(dir string) string {
	if ownFiles(r.Kind) {
		return InsideHome
	}
	return r.homeOnHost(dir)
}

// environ returns the whole environment of a command in the sandbox. It contains nothing from the orchestrator's
// environment.
func (r Record) environ(dir string) []string {
	tmp := TmpPath(dir)
	if ownFiles(r.Kind) {
		tmp = "/tmp"
	}
	path := append(append([]string(nil), r.Path...), systemPath)
	if ownFiles(r.Kind) {
		path = append(path, filepath.Dir(insideRunner))
	}
	return []string{
		"HOME=" + r.HomeInside(dir), "USER=" + User, "LOGNAME=" + User, "SHELL=/bin/sh", "LANG=C.UTF-8",
		"PATH=" + strings.Join(path, ":"), "TMPDIR=" + tmp,
		"ERRAND_BOX=" + r.Name, "ERRAND_TETHER_PORT=" + strconv.Itoa(r.TetherPort),
	}
}

// insideCommand returns the process that the supervisor starts, with the sandbox around it. Its environment is minimal;
// extra follows the subcommand box-ssh.
func insideCommand(rec Record, dir string, extra ...string) (*exec.Cmd, error) {
	var cmd *exec.Cmd
	var view []mount
	if ownFiles(rec.Kind) {
		var err error
		if view, err = viewOf(rec, dir); err != nil {
			return nil, err
		}
		if err := chownForAgent(rec, dir); err != nil {
			return nil, err
		}
	}
	args := append([]string{"box-ssh", "-init", rec.Kind}, extra...)
	if ownFiles(rec.Kind) && runsAsRoot() {
		args = append(args, "-as", strconv.Itoa(agentID))
	}
	switch rec.Kind {
	case KindBwrap:
		if !runsAsRoot() { // bubblewrap's own first process does that
			args = append([]string{"box-ssh"}, extra...)
		}
		cmd = exec.Command("bwrap", append(append(bwrapArgs(view), insideRunner), args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	case KindUserns, KindPlain:
		if view != nil {
			text, err := json.Marshal(view)
			if err != nil {
				return nil, err
			}
			args = append(args, "-dir", dir, "-view", string(text))
		}
		cmd = exec.Command(rec.Runner, args...)
		cmd.Dir = rec.homeOnHost(dir)
		attr, err := initAttr(rec.Kind)
		if err != nil {
			return nil, err
		}
		cmd.SysProcAttr = attr
	default:
		return nil, fmt.Errorf("box kind %q: unknown", rec.Kind)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + rec.HomeInside(dir), "LANG=C.UTF-8"}
	return cmd, nil
}
