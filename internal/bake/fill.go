package bake

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// SeedDir is the folder with copies of repositories in an image, relative to the home of the agent's user. Each copy is
// a bare repository OWNER/NAME.git in lower case. Checkouts take objects from it instead of fetching them.
const SeedDir = ".errand/seed"

// work is the folder in which a repository is checked out to warm its caches. It is the same as for tasks, because some
// caches contain paths.
const work = "work"

const (
	stepTime  = 10 * time.Minute // for errand's own steps
	tailLines = 30               // of a failed command's output
	maxLine   = 2000
)

// fill installs everything that belongs into the image.
func (b *Baker) fill(ctx context.Context, vm fleet.VM, g Group, log zerolog.Logger) error {
	limit := g.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	if strings.TrimSpace(g.Script) != "" {
		if err := b.run(ctx, vm, script{step: "script", asRoot: true, text: g.Script, limit: limit}, log); err != nil {
			return fmt.Errorf("run the script: %w", err)
		}
	}
	if err := b.putRunner(ctx, vm); err != nil {
		return fmt.Errorf("install the runner: %w", err)
	}
	if b.cfg.Source != nil {
		for _, repo := range g.namedRepos() {
			if err := b.seed(ctx, vm, repo, g.Warm, limit, log.With().Str("repo", repo).Logger()); err != nil {
				return fmt.Errorf("copy %s: %w", repo, err)
			}
		}
	}
	// Cleaning and syncing is one command, because the clean-up disables logins. The sync writes everything to the disk
	// in case the power is cut.
	clean := script{step: "clean", asRoot: true, text: b.cfg.Clean + "\nsync\n", limit: stepTime}
	if err := b.run(ctx, vm, clean, log); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// putRunner copies the runner to the place where later connections look for an installed one.
func (b *Baker) putRunner(ctx context.Context, vm fleet.VM) error {
	if b.cfg.Runner == nil || vm.Facts[fleet.FactRunner] != "" {
		return nil
	}
	// If the folder is not writable by the agent's user, root owns the runner, which is as safe as the runner user
	// owning it.
	dir := vm.Facts[fleet.FactRunnerDir]
	cl, err := b.cfg.VMs.Connect(ctx, vm.Name, dir != "")
	if err != nil {
		return err
	}
	if dir == "" {
		dir = path.Join(vm.Facts[fleet.FactHome], ".errand", "bin")
	}
	res, err := cl.Run(ctx, remote.Cmd{Argv: []string{"uname", "-m"}})
	if err != nil {
		return fmt.Errorf("ask for the machine type: %w", err)
	}
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[strings.TrimSpace(string(res.Stdout))]
	data, name, err := b.cfg.Runner(arch)
	if err != nil {
		return err
	}
	return cl.Copy(ctx, bytes.NewReader(data), int64(len(data)), path.Join(dir, name), 0o755)
}

// seedScript creates the bare copy from a bundle. Its arguments are the bundle, the target folder and the default
// branch. It removes the remote.
const seedScript = `rm -rf -- "$2"
mkdir -p -- "$(dirname "$2")"
git clone --quiet --mirror -- "$1" "$2"
git -C "$2" config --remove-section remote.origin
git -C "$2" symbolic-ref HEAD "refs/heads/$3"
rm -f -- "$1"
`

// warmScript checks a copy out, runs the commands in $3 there and deletes the checkout.
const warmScript = `rm -rf -- "$2"
git clone --quiet --shared -- "$1" "$2"
(cd "$2" && bash --norc -euo pipefail -c "$3")
rm -rf -- "$2"
`

// seed puts a copy of a repository on the VM and warms caches from it.
func (b *Baker) seed(ctx context.Context, vm fleet.VM, repo, warm string, limit time.Duration, log zerolog.Logger) error {
	bundle, err := b.cfg.Source.Bundle(ctx, repo)
	if err != nil {
		return err
	}
	defer func() { _ = bundle.Close() }()
	cl, err := b.cfg.VMs.Connect(ctx, vm.Name, false)
	if err != nil {
		return err
	}
	home := vm.Facts[fleet.FactHome]
	dir := path.Join(home, SeedDir, strings.ToLower(repo)+".git")
	file := dir + ".bundle"
	if err := cl.Copy(ctx, bundle, bundle.Size, file, 0o600); err != nil {
		return err
	}
	seed := script{step: "seed", text: seedScript, limit: stepTime, args: []string{file, dir, bundle.Head}}
	if err := b.run(ctx, vm, seed, log); err != nil {
		return err
	}
	if strings.TrimSpace(warm) == "" {
		return nil
	}
	caches := script{step: "warm", text: warmScript, limit: limit, args: []string{dir, path.Join(home, work), warm}}
	if err := b.run(ctx, vm, caches, log); err != nil {
		return fmt.Errorf("warm its caches: %w", err)
	}
	return nil
}

// A ScriptError reports that a script on the VM failed, with the end of its output.
type ScriptError struct {
	Code int
	Tail string
}

func (e *ScriptError) Error() string {
	return fmt.Sprintf("exit status %d, after:\n%s", e.Code, e.Tail)
}

// A script is a step of a bake that bash runs on the VM.
type script struct {
	step   string // its name in the log
	asRoot bool   // instead of the agent's user
	text   string
	args   []string // $1 and on
	limit  time.Duration
}

// run runs a script with bash, which exits at the first failing command. Output goes to the log line by line. Standard
// input is empty: the text is passed as an argument, so that the commands it runs cannot read the script.
func (b *Baker) run(ctx context.Context, vm fleet.VM, s script, log zerolog.Logger) error {
	cl, err := b.cfg.VMs.Connect(ctx, vm.Name, s.asRoot)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("it took longer than %s", s.limit))
	defer cancel()
	// Without --norc bash reads its start file when run by an SSH server; that file is not written for -u.
	argv := append([]string{"bash", "--norc", "-c", "exec bash --norc -euo pipefail -c \"$0\" bake \"$@\" 2>&1 </dev/null", s.text}, s.args...)
	out, wait, err := cl.Stream(ctx, remote.Cmd{Argv: argv, Env: map[string]string{"DEBIAN_FRONTEND": "noninteractive"}})
	if err != nil {
		return err
	}
	tail, rerr := logOutput(out, log.With().Str("step", s.step).Logger())
	if rerr != nil {
		_ = out.Close() // ends the command if it is still running
	}
	res, err := wait()
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w; last output:\n%s", cause, tail)
	}
	if err := errors.Join(err, rerr); err != nil {
		return err
	}
	if res.Code != 0 {
		return &ScriptError{Code: res.Code, Tail: tail}
	}
	return nil
}

// logOutput logs each line and returns the last ones.
func logOutput(r io.Reader, log zerolog.Logger) (string, error) {
	var last []string
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, more, err := lines.ReadLine()
		if err == io.EOF {
			return strings.Join(last, "\n"), nil
		}
		if err != nil {
			return strings.Join(last, "\n"), err
		}
		text := strings.ToValidUTF8(string(line), "?")
		for more && err == nil { // skips the rest of a line that is too long
			_, more, err = lines.ReadLine()
		}
		log.Info().Msg(text)
		if last = append(last, text); len(last) > tailLines {
			last = last[1:]
		}
	}
}
