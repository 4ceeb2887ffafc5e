package workflowtest

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/roots"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

// Host simulates VMs and their runner: the only VM is a directory, in which the runner's code works with real git on
// the simulator's bare repository.
type Host struct {
	w        *World
	Dir      string // the checkout
	Home     string // the agent's files
	VM       state.VM
	Isolated bool
	// NoSnapshot makes snapshots disappear.
	NoSnapshot bool

	Started  []runner.Spec
	Stopped  []string
	Released []string
	Prepared []work.PrepareSpec
	Resets   []work.ResetSpec
	Ensured  int
	Unpacked []string         // target VMs
	Errs     map[string]error // by method
	Tamper   func(*changeset.Changeset)
}

func newHost(w *World) *Host {
	return &Host{
		w:        w,
		Dir:      filepath.Join(w.T.TempDir(), "checkout"),
		Home:     w.T.TempDir(),
		VM:       state.VM{Name: "vm-1", Gen: 1},
		Isolated: true,
		Errs:     map[string]error{},
	}
}

// Acquire returns the only VM.
func (h *Host) Acquire(_ context.Context, t *state.Task) (state.VM, error) {
	if h.NoSnapshot && t.WorkToRestore() != nil {
		return state.VM{}, workspace.ErrNoSnapshot
	}
	return h.VM, h.Errs["Acquire"]
}

// Release records the request.
func (h *Host) Release(_ context.Context, vm string, why state.VMEndReason) error {
	h.Released = append(h.Released, vm+" "+string(why))
	return h.Errs["Release"]
}

// Place returns the place of the directory.
func (h *Host) Place(context.Context, string) (runnerctl.Place, error) {
	return runnerctl.Place{
		Runner:   "/bin/errand-runner",
		Home:     "/home/agent",
		Dir:      h.Dir,
		BaseURL:  "http://127.0.0.1:9",
		Isolated: h.Isolated,
	}, h.Errs["Place"]
}

// bare returns the address from which git fetches, because there is no tether.
func (h *Host) bare(s work.Source) work.Source { s.URL, s.Token = h.w.Repo.Git.Dir, ""; return s }

// Prepare calls the runner's function.
func (h *Host) Prepare(ctx context.Context, _ string, spec work.PrepareSpec) (work.Place, error) {
	h.Prepared = append(h.Prepared, spec)
	if err := h.Errs["Prepare"]; err != nil {
		return work.Place{}, err
	}
	spec.Source = h.bare(spec.Source)
	return work.Prepare(ctx, spec)
}

// Reset calls the runner's function.
func (h *Host) Reset(ctx context.Context, _ string, spec work.ResetSpec) error {
	h.Resets = append(h.Resets, spec)
	if err := h.Errs["Reset"]; err != nil {
		return err
	}
	spec.Source = h.bare(spec.Source)
	_, err := work.Reset(ctx, spec)
	return err
}

// Rebase calls the runner's function.
func (h *Host) Rebase(ctx context.Context, _ string, spec work.RebaseSpec) (work.Rebased, error) {
	spec.Source = h.bare(spec.Source)
	return work.Rebase(ctx, spec)
}

// Collect calls the runner's function; Tamper may change its result.
func (h *Host) Collect(ctx context.Context, _ string, spec work.CollectSpec) (*changeset.Changeset, error) {
	if err := h.Errs["Collect"]; err != nil {
		return nil, err
	}
	cs, err := work.Collect(ctx, spec)
	if err == nil && h.Tamper != nil {
		h.Tamper(cs) // changes by a hostile VM
	}
	return cs, err
}

// Trust calls the runner's function.
func (h *Host) Trust(_ context.Context, _ string, spec roots.Spec) error { return roots.Install(spec) }

// Lend calls the runner's function.
func (h *Host) Lend(ctx context.Context, _ string, spec work.LendSpec) (work.Lent, error) {
	if err := h.Errs["Lend"]; err != nil {
		return work.Lent{}, err
	}
	return work.Lend(ctx, spec)
}

// Put writes a file of the agent's.
func (h *Host) Put(_ context.Context, _, file string, content []byte) error {
	if err := h.Errs["Put"]; err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// Pack calls the runner's function.
func (h *Host) Pack(ctx context.Context, _ string, spec pack.Spec, w io.Writer) (pack.Manifest, error) {
	if err := h.Errs["Pack"]; err != nil {
		return pack.Manifest{}, err
	}
	spec.Home = h.Home
	return pack.Pack(ctx, spec, w)
}

// Unpack calls the runner's function.
func (h *Host) Unpack(ctx context.Context, vm string, spec pack.UnpackSpec, r io.Reader) (pack.Manifest, error) {
	h.Unpacked = append(h.Unpacked, vm)
	if err := h.Errs["Unpack"]; err != nil {
		return pack.Manifest{}, err
	}
	spec.Home, spec.Source = h.Home, h.bare(spec.Source)
	return pack.Unpack(ctx, spec, r)
}

// Start records the run.
func (h *Host) Start(_ context.Context, _ string, spec runner.Spec) error {
	h.Started = append(h.Started, spec)
	return h.Errs["Start"]
}

// Knows reports whether the run was started.
func (h *Host) Knows(_ context.Context, _, run string) (bool, error) {
	return slices.ContainsFunc(h.Started, func(s runner.Spec) bool { return s.ID == run }), h.Errs["Knows"]
}

// Runs returns the runs that were started.
func (h *Host) Runs(context.Context, string) (ids []string, err error) {
	for _, s := range h.Started {
		ids = append(ids, s.ID)
	}
	return ids, h.Errs["Runs"]
}

// Stop records the run.
func (h *Host) Stop(_ context.Context, _, run, why string) error {
	h.Stopped = append(h.Stopped, run+" "+why)
	return h.Errs["Stop"]
}

// Ensure counts its calls.
func (h *Host) Ensure(context.Context, string, state.TaskKey) error {
	h.Ensured++
	return h.Errs["Ensure"]
}

// RunToken returns a fixed token.
func (h *Host) RunToken(run string) string { return "token-of-" + run }

// VMToken returns a fixed token.
func (h *Host) VMToken(vm string) string { return "token-of-" + vm }

// Checkout creates the VM's checkout at the head of a branch or at a commit.
func (h *Host) Checkout(t *testing.T, at string) {
	t.Helper()
	h.run(t, filepath.Dir(h.Dir), "clone", "--quiet", h.w.Repo.Git.Dir, h.Dir)
	h.Git(t, "checkout", "--quiet", "-B", h.w.Task.Branch.Name, at)
	h.w.Task.VM = &h.VM
}

// Commit creates a commit in the checkout as an agent would; an empty content deletes the file.
func (h *Host) Commit(t *testing.T, message string, files map[string]string) string {
	t.Helper()
	h.Write(t, files)
	h.Git(t, "add", "-A")
	h.Git(t, "commit", "--quiet", "-m", message)
	return h.Git(t, "rev-parse", "HEAD")
}

// Write writes files in the checkout; an empty content deletes the file.
func (h *Host) Write(t *testing.T, files map[string]string) {
	t.Helper()
	for path, content := range files {
		name := filepath.Join(h.Dir, path)
		Check(t, os.MkdirAll(filepath.Dir(name), 0o755))
		if content == "" {
			Check(t, os.Remove(name))
			continue
		}
		Check(t, os.WriteFile(name, []byte(content), 0o644))
	}
}

// Git runs git in the checkout and returns its output.
func (h *Host) Git(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(h.run(t, h.Dir, args...))
}

func (h *Host) run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=agent", "GIT_AUTHOR_EMAIL=a@vm", "GIT_COMMITTER_NAME=agent", "GIT_COMMITTER_EMAIL=a@vm")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
