// Package programs installs the agents' programs, in the versions that errand is tested with.
//
// Each program has a folder here with a package.json and a lock file, by which npm verifies what it downloads. npm runs no installation
// scripts: an installation executes nothing of a package. [Install] is for a host, [Script] for VMs; `make clis` uses the former
// for the tests.
//
// Start with [Install].
package programs

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/errand-bot/errand/internal/durable"
)

//go:embed */package.json */package-lock.json
var locks embed.FS

// programs are the packages, and where each has its program, as a pattern. For Claude Code and Codex this is the executable itself and not
// the package's launcher, which depends on its installation script or on Node.js.
var programs = map[string]struct{ npm, file string }{
	"claude": {"@anthropic-ai/claude-code", "@anthropic-ai/claude-code-linux-*64/claude"},
	"codex":  {"@openai/codex", "@openai/codex-linux-*64/vendor/*/bin/codex"},
	"gemini": {"@google/gemini-cli", "@google/gemini-cli/bundle/gemini.js"},
}

// Names returns the programs that can be installed, which have the names of their adapters.
func Names() []string {
	var out []string
	for name := range programs {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Version returns the version of a program that is installed.
func Version(name string) string {
	text, err := locks.ReadFile(name + "/package.json")
	var about struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err != nil {
		panic(fmt.Sprintf("programs: the package.json of %q: %v", name, err)) // it is part of this program
	}
	return about.Dependencies[programs[name].npm]
}

// timeout is how long npm may take, for up to 400 MB.
const timeout = 20 * time.Minute

// ErrNoNPM means that npm is missing.
var ErrNoNPM = errors.New("npm is not installed; install it, for example with `apt-get install nodejs npm`")

// Bin returns the folder below dir that has the installed programs, for a PATH.
func Bin(dir string) string { return filepath.Join(dir, "bin") }

// Installed reports whether dir has a program in the current version.
func Installed(dir, name string) bool {
	want, err := locks.ReadFile(name + "/package-lock.json")
	if err != nil {
		return false
	}
	got, err := os.ReadFile(filepath.Join(dir, name, "package-lock.json"))
	if err != nil || !bytes.Equal(got, want) {
		return false
	}
	_, err = os.Stat(filepath.Join(Bin(dir), name))
	return err == nil
}

// Install installs a program below dir, which is created, with a link in [Bin]. Every user of the host can read and run it. An earlier
// version is replaced once the new one is complete, and an interrupted installation is repeated by the next one.
func Install(ctx context.Context, dir, name string) (err error) {
	if _, ok := programs[name]; !ok {
		return fmt.Errorf("%s cannot be installed by errand", name)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return ErrNoNPM
	}
	if name == "gemini" {
		if err := checkNode(ctx); err != nil {
			return err
		}
	}
	for _, make := range []func() error{ // whatever the umask
		func() error { return durable.MkdirAll(Bin(dir), 0o755) },
		func() error { return os.Chmod(dir, 0o755) },
		func() error { return os.Chmod(Bin(dir), 0o755) },
	} {
		if err := make(); err != nil {
			return fmt.Errorf("create the folder for agents' programs: %w", err)
		}
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetFlag(os.O_CREATE|os.O_RDONLY|syscall.O_NOFOLLOW))
	held, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock the folder for agents' programs: %w", err)
	}
	if !held {
		return fmt.Errorf("another installation is running in %s; wait for it or stop it", dir)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	fresh := filepath.Join(dir, "."+name+".new")
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an earlier attempt: %w", err)
	}
	if err := fetch(ctx, npm, fresh, name); err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	return replace(dir, fresh, name)
}

// minNode is the oldest version of Node.js that runs Gemini CLI.
const minNode = 20

// checkNode returns an error if the host's Node.js is too old for a program that needs it.
func checkNode(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--version")
	cmd.Env, cmd.WaitDelay = environment(os.Environ()), time.Second
	out, err := cmd.Output()
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	n, numErr := strconv.Atoi(major)
	if err := errors.Join(err, numErr); err != nil {
		return fmt.Errorf("gemini needs Node.js %d or later, whose version is not known: %w", minNode, err)
	}
	if n < minNode {
		return fmt.Errorf("gemini needs Node.js %d or later, but `node --version` says %q", minNode, strings.TrimSpace(string(out)))
	}
	return nil
}

// environment returns the variables that npm needs: to find programs and its settings, and to reach a registry. The others can be secrets.
func environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		switch strings.ToUpper(name) {
		case "PATH", "HOME", "USER", "LANG", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR":
			return false
		}
		return !strings.HasPrefix(strings.ToUpper(name), "NPM_CONFIG_")
	})
}

// fetch has npm download a program into a new folder.
func fetch(ctx context.Context, npm, dir, name string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("create the folder for %s: %w", name, err)
	}
	for _, file := range []string{"package.json", "package-lock.json"} {
		text, err := locks.ReadFile(path.Join(name, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write npm's files for %s: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir, cmd.Env = dir, environment(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("npm could not install %s %s: %w\n%s", name, Version(name), err, last(string(out)))
	}
	return readable(dir)
}

// last returns the end of a program's output.
func last(out string) string {
	const most = 2000
	out = strings.TrimSpace(out)
	return out[max(0, len(out)-most):]
}

// readable lets every user read a folder, and run its programs.
func readable(dir string) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if e.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode&^0o022)
	})
	if err != nil {
		return fmt.Errorf("let every user read the program: %w", err)
	}
	return nil
}

// replace moves a complete installation into place, and links its program.
func replace(dir, fresh, name string) error {
	found, err := filepath.Glob(filepath.Join(fresh, "node_modules", filepath.FromSlash(programs[name].file)))
	if err != nil || len(found) != 1 {
		return errors.Join(fmt.Errorf("npm installed no %s for this kind of computer (found %d programs)", name, len(found)), err, os.RemoveAll(fresh))
	}
	below, err := filepath.Rel(fresh, found[0])
	if err != nil {
		return fmt.Errorf("find the program %s: %w", name, err)
	}
	final, link := filepath.Join(dir, name), filepath.Join(Bin(dir), name)
	temp := link + ".new"
	for _, move := range []func() error{
		func() error { return os.RemoveAll(temp) },
		func() error { return os.Symlink(filepath.Join("..", name, below), temp) },
		func() error { return os.RemoveAll(final) },
		func() error { return os.Rename(fresh, final) },
		func() error { return os.Rename(temp, link) },
	} {
		if err := move(); err != nil {
			return fmt.Errorf("move the program %s into place: %w", name, err)
		}
	}
	return nil
}

// Script returns the lines of a shell script that install a program on a VM of Ubuntu 24.04, as root, or "" where its Node.js is too old
// for the program.
func Script(name string) string {
	p := programs[name]
	if !strings.Contains(p.file, "*") {
		return ""
	}
	return strings.Join([]string{
		"apt-get update && apt-get install -y nodejs npm",
		fmt.Sprintf("npm install -g --ignore-scripts %s@%s", p.npm, Version(name)),
		fmt.Sprintf(`ln -sf "$(npm root -g)"/%s/node_modules/%s /usr/local/bin/%s`, p.npm, p.file, name),
	}, "\n") + "\n"
}
