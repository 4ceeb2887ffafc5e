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

// SeedDir is where copies of repositories lie in an image, below the home of the agent's user: bare, one
// folder OWNER/NAME.git each, in lower case. A checkout takes from them what it would else fetch.
const SeedDir = ".errand/seed"

// work is where a repository is checked out while its caches are warmed: where tasks have it, too, because
// some caches know paths.
const work = "work"

const (
	stepTime  = 10 * time.Minute // for what errand does itself
	tailLines = 30               // of a command that failed
	maxLine   = 2000
)

// fill does everything that an image is made for.
func (b *Baker) fill(ctx context.Context, vm fleet.VM, g Group, log zerolog.Logger) error {
	limit := g.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	if strings.TrimSpace(g.Script) != "" {
		if err := b.script(ctx, vm.Name, true, "", g.Script, limit, log.With().Str("step", "script").Logger()); err != nil {
			return fmt.Errorf("run the script: %w", err)
		}
	}
	if err := b.putRunner(ctx, vm); err != nil {
		return fmt.Errorf("bring the runner: %w", err)
	}
	if b.cfg.Source != nil {
		for _, repo := range g.named() {
			if err := b.seed(ctx, vm, repo, g.Warm, limit, log.With().Str("repo", repo).Logger()); err != nil {
				return fmt.Errorf("copy %s: %w", repo, err)
			}
		}
	}
	// One command, since the clean-up ends logins: then what was written goes to the disk, should the VM be cut off.
	if err := b.script(ctx, vm.Name, true, "", b.cfg.Clean+"\nsync\n", stepTime, log.With().Str("step", "clean").Logger()); err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// putRunner copies the runner to where it is looked for before it is copied.
func (b *Baker) putRunner(ctx context.Context, vm fleet.VM) error {
	if b.cfg.Runner == nil || vm.Facts[fleet.FactRunner] != "" {
		return nil
	}
	// Where the agent's user may not change the runner it is root's, as good as the runner's own.
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

// seedScript makes the bare copy from a bundle; it takes the bundle, the folder and the default branch. No
// way back to where it came from stays.
const seedScript = `rm -rf -- "$2"
mkdir -p -- "$(dirname "$2")"
git clone --quiet --mirror -- "$1" "$2"
git -C "$2" config --remove-section remote.origin
git -C "$2" symbolic-ref HEAD "refs/heads/$3"
rm -f -- "$1"
`

// warmScript checks a copy out, runs what $3 says in it, and takes the checkout away.
const warmScript = `rm -rf -- "$2"
git clone --quiet --shared -- "$1" "$2"
(cd "$2" && bash --norc -euo pipefail -c "$3")
rm -rf -- "$2"
`

// seed puts a copy of a repository on the VM and fills caches from it.
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
	if err := b.script(ctx, vm.Name, false, "", seedScript, stepTime, log.With().Str("step", "seed").Logger(), file, dir, bundle.Head); err != nil {
		return err
	}
	if strings.TrimSpace(warm) == "" {
		return nil
	}
	if err := b.script(ctx, vm.Name, false, "", warmScript, limit, log.With().Str("step", "warm").Logger(), dir, path.Join(home, work), warm); err != nil {
		return fmt.Errorf("warm its caches: %w", err)
	}
	return nil
}

// ScriptError says that a script on the VM failed, with the end of what it wrote.
type ScriptError struct {
	Code int
	Tail string
}

func (e *ScriptError) Error() string {
	return fmt.Sprintf("exit status %d, after:\n%s", e.Code, e.Tail)
}

// script runs a text by bash, which ends at the first command that fails. What it writes goes to the
// log, line by line. It has no input: its text comes as an argument, so that nothing of it is read by
// what it calls.
func (b *Baker) script(ctx context.Context, vm string, root bool, dir, text string, limit time.Duration, log zerolog.Logger, args ...string) error {
	cl, err := b.cfg.VMs.Connect(ctx, vm, root)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
	defer cancel()
	// Without --norc bash reads its start file if an SSH server runs it, and that file is not made for -u.
	argv := append([]string{"bash", "--norc", "-c", "exec bash --norc -euo pipefail -c \"$0\" bake \"$@\" 2>&1 </dev/null", text}, args...)
	out, wait, err := cl.Stream(ctx, remote.Cmd{Argv: argv, Dir: dir, Env: map[string]string{"DEBIAN_FRONTEND": "noninteractive"}})
	if err != nil {
		return err
	}
	tail, rerr := follow(out, log)
	if rerr != nil {
		_ = out.Close() // which ends the command, if it has not ended
	}
	res, err := wait()
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w; at last it wrote:\n%s", cause, tail)
	}
	if err := errors.Join(err, rerr); err != nil {
		return err
	}
	if res.Code != 0 {
		return &ScriptError{Code: res.Code, Tail: tail}
	}
	return nil
}

// follow logs what comes and returns the last lines of it.
func follow(r io.Reader, log zerolog.Logger) (string, error) {
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
		for more && err == nil { // the rest of a line that is too long
			_, more, err = lines.ReadLine()
		}
		log.Info().Msg(text)
		if last = append(last, text); len(last) > tailLines {
			last = last[1:]
		}
	}
}
