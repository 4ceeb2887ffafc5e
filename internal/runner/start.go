package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runner/maven"
)

// startTimeout bounds the time until a supervisor reports that it has started.
const startTimeout = 60 * time.Second

// pollPause is the interval at which files of other processes are polled.
const pollPause = 25 * time.Millisecond

// Start starts a run under a detached supervisor and returns when the supervisor works. It is idempotent by the run's
// id: if the run was started before, Status and Follow report its state. A run whose files cannot be written is not
// started. If the supervisor does not answer, Start returns an error and the run is lost.
func Start(ctx context.Context, root Root, spec Spec) (Started, error) {
	if err := spec.Validate(); err != nil {
		return Started{}, fmt.Errorf("start run: %w", err)
	}
	dir := root.RunDir(spec.ID)
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return Started{}, fmt.Errorf("start run %s: %w", spec.ID, err)
	}
	if exists(filepath.Join(dir, specFile)) {
		return alreadyStarted(dir), nil
	}
	lock, err := tryLock(filepath.Join(dir, aliveFile))
	if errors.Is(err, errLocked) {
		return awaitOther(ctx, dir)
	}
	if err != nil {
		return Started{}, fmt.Errorf("start run %s: %w", spec.ID, err)
	}
	defer lock.Close()
	if exists(filepath.Join(dir, specFile)) {
		return alreadyStarted(dir), nil
	}
	started, err := launch(root, spec, lock)
	if err != nil {
		return Started{}, fmt.Errorf("start run %s: %w", spec.ID, err)
	}
	return started, nil
}

func alreadyStarted(dir string) Started {
	return Started{Already: true, Isolation: readIsolation(dir)}
}

// awaitOther waits until a concurrent start of the same run has written the spec.
func awaitOther(ctx context.Context, dir string) (Started, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if !await(ctx, func() bool { return exists(filepath.Join(dir, specFile)) }) {
		return Started{}, errors.New("start run: a concurrent start of it made no progress")
	}
	return alreadyStarted(dir), nil
}

// await polls a condition until it holds or ctx ends, and returns whether it held.
func await(ctx context.Context, condition func() bool) bool {
	ticker := time.NewTicker(pollPause)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

func launch(root Root, spec Spec, lock *os.File) (Started, error) {
	dir := root.RunDir(spec.ID)
	self, err := os.Executable()
	if err != nil {
		return Started{}, fmt.Errorf("find own file: %w", err)
	}
	u := userOf(root, spec)
	if settings := maven.Settings(spec.Env); settings != nil {
		spec.Files = append(spec.Files, File{Path: "~/" + maven.Path, Content: settings, Keep: true})
	}
	if spec, err = resolve(u.root(), spec, self); err != nil {
		return Started{}, err
	}
	if err := recordFirstRun(root); err != nil {
		return Started{}, err
	}
	if err := u.write(spec.Files); err != nil {
		return Started{}, err
	}
	spec.Files = nil // they may be large, and have been written
	if err := writeJSON(filepath.Join(dir, specFile), spec); err != nil {
		return Started{}, err
	}
	return spawn(root, spec.ID, self, lock)
}

// resolve fills in defaults and placeholders. root is that of the user who runs the commands.
func resolve(root Root, spec Spec, self string) (Spec, error) {
	spec = spec.withDefaults()
	dir := root.RunDir(spec.ID)
	replace := strings.NewReplacer("{runner}", self, "{run_dir}", dir, "{root}", string(root)).Replace
	argv := make([]string, len(spec.Argv))
	for i, arg := range spec.Argv {
		argv[i] = replace(arg)
	}
	spec.Argv = argv
	env := make(map[string]string, len(spec.Env))
	for name, value := range spec.Env {
		env[name] = replace(value)
	}
	spec.Env = env
	files := make([]File, len(spec.Files))
	for i, f := range spec.Files {
		path, err := expandHome(replace(f.Path), spec.Home)
		if err != nil {
			return Spec{}, err
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		f.Path = path
		files[i] = f
	}
	spec.Files = files
	var err error
	spec.Dir, err = expandHome(replace(spec.Dir), spec.Home)
	return spec, err
}

func writeFiles(files []File) error {
	for _, f := range files {
		if _, err := os.Lstat(f.Path); err == nil && f.Keep {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return fmt.Errorf("write file: %w", err)
		}
		mode := os.FileMode(orDefault(f.Mode, 0o600))
		if err := durable.WriteFile(f.Path, f.Content, mode); err != nil {
			return err
		}
	}
	return nil
}

// spawn starts the supervisor in its own session. The supervisor inherits the lock, so the run counts as alive from
// before its start until its end.
func spawn(root Root, id, self string, lock *os.File) (Started, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return Started{}, fmt.Errorf("open pipe: %w", err)
	}
	defer reader.Close()
	defer writer.Close()
	out, err := os.OpenFile(filepath.Join(root.RunDir(id), superviseLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Started{}, fmt.Errorf("open supervisor's log: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(self, "supervise", "--root", string(root), "--run", id)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{lock, writer}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Started{}, fmt.Errorf("start supervisor: %w", err)
	}
	_ = writer.Close()
	if err := reader.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return Started{}, fmt.Errorf("await supervisor: %w", err)
	}
	var started Started
	if err := json.NewDecoder(io.LimitReader(reader, 1<<16)).Decode(&started); err != nil {
		return Started{}, fmt.Errorf("await supervisor %s: %w", strconv.Itoa(cmd.Process.Pid), err)
	}
	return started, cmd.Process.Release()
}
