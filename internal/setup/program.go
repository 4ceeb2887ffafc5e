package setup

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agent/programs"
	"github.com/errand-bot/errand/internal/config"
)

// programsName is the folder for agents' programs, in the folder of the setup.
const programsName = "programs"

// defaultProgram returns whether the agent's program should be installed: on VMs always, because they have none, and on this host if
// somebody at a terminal can decline.
func defaultProgram(r *run) string {
	agent := r.answer("agent")
	onVMs := r.answer("vms") != config.ProviderLocal
	path, err := exec.LookPath(agent)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	missing := err != nil || !strings.HasPrefix(path, "/usr/") // sandboxes do not see other folders
	switch {
	case onVMs && programs.Script(agent) != "", !onVMs && r.front.interactive() && missing:
		return install
	}
	return present
}

// The answers to the question for the agent's program.
const (
	install = "install" // errand installs it
	present = "present"
)

// checkProgram accepts only what can be installed.
func checkProgram(r *run, v string) error {
	if agent := r.answer("agent"); v == install && r.answer("vms") != config.ProviderLocal && programs.Script(agent) == "" {
		return errors.New("the Node.js of a new VM is too old for the program of " + agent + ": write present, and install both in a base image")
	}
	return nil
}

// The answers to the question for the systemd unit.
const (
	startUnit = "start"
	writeUnit = "write"
	printUnit = "print"
)

// checkUnit accepts a start only where systemd can do it.
func checkUnit(r *run, v string) error {
	if v == startUnit && r.Systemctl == nil {
		return errors.New("this host has no systemctl: write print, and start errand by other means")
	}
	return nil
}

// installsProgram reports whether sandboxes use a program that the setup installs.
func (r *run) installsProgram() bool {
	if r.loaded {
		return r.cfg.Provider == config.ProviderLocal &&
			slices.ContainsFunc(r.cfg.Local.Binds, func(b config.Bind) bool { return b.Path == r.path(programsName) })
	}
	return r.answer("vms") == config.ProviderLocal && questionOf("agent_program").applies(r) && r.answer("agent_program") == install
}

// installProgram installs the agent's program on this host, if sandboxes use it.
func (r *run) installProgram(ctx context.Context) error {
	agent, dir := r.answer("agent"), r.path(programsName)
	if r.loaded {
		agent = r.cfg.Agent.Adapter
	}
	if !slices.Contains(programs.Names(), agent) || !r.installsProgram() {
		r.say("There is nothing to install on this host.\n")
		return nil
	}
	if programs.Installed(dir, agent) {
		r.say("%s %s is installed in %s.\n", agent, programs.Version(agent), dir)
		return nil
	}
	if os.Geteuid() == 0 {
		if err := r.chooseUser(ctx); err != nil {
			return err
		}
		if who, err := user.Lookup(r.answer("user")); err != nil || who.Uid == rootUser {
			return errors.New("if errand runs as root, its sandboxes run as another user, which cannot read the folder of the setup: create the user " +
				"errand, as docs/install.md says, or install the program yourself and answer `agent_program: present`")
		}
	}
	r.say("Installing %s %s by npm, which takes a few minutes …\n", agent, programs.Version(agent))
	if err := r.Install(ctx, dir, agent); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.say("You can also install it yourself: answer `agent_program: present`, or %s.\n", r.front.skip("program"))
		return err
	}
	r.say("Installed %s %s in %s.\n", agent, programs.Version(agent), dir)
	return nil
}
