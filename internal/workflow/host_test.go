package workflow_test

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
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

// host stands for VMs and what runs on them: the one VM is a folder, in which the runner's own code
// works with real git on the stand-in's bare repository.
type host struct {
	w        *world
	dir      string // the checkout
	home     string // of the agent
	vm       state.VM
	isolated bool
	// noSnapshot says that what a VM could be made from is gone.
	noSnapshot bool

	started  []runner.Spec
	stopped  []string
	released []string
	prepared []work.PrepareSpec
	reset    []work.ResetSpec
	ensured  int
	unpacked []string         // onto which VMs
	errs     map[string]error // by method
	collect  func(*changeset.Changeset)
}

func newHost(w *world) *host {
	return &host{w: w, dir: filepath.Join(w.t.TempDir(), "checkout"), home: w.t.TempDir(), vm: state.VM{Name: "vm-1", Gen: 1}, isolated: true, errs: map[string]error{}}
}

func (h *host) Acquire(_ context.Context, t *state.Task) (state.VM, error) {
	if h.noSnapshot && t.Wakes() != nil {
		return state.VM{}, workspace.ErrNoSnapshot
	}
	return h.vm, h.errs["Acquire"]
}

func (h *host) Release(_ context.Context, vm, why string) error {
	h.released = append(h.released, vm+" "+why)
	return h.errs["Release"]
}

func (h *host) Place(context.Context, string) (runnerctl.Place, error) {
	return runnerctl.Place{Runner: "/bin/errand-runner", Home: "/home/agent", Dir: h.dir, BaseURL: "http://127.0.0.1:9", Isolated: h.isolated}, h.errs["Place"]
}

// bare is where git really fetches from: there is no tether here.
func (h *host) bare(s work.Source) work.Source { s.URL, s.Token = h.w.repo.Git.Dir, ""; return s }

func (h *host) Prepare(ctx context.Context, _ string, spec work.PrepareSpec) (work.Place, error) {
	h.prepared = append(h.prepared, spec)
	if err := h.errs["Prepare"]; err != nil {
		return work.Place{}, err
	}
	spec.Source = h.bare(spec.Source)
	return work.Prepare(ctx, spec)
}

func (h *host) Reset(ctx context.Context, _ string, spec work.ResetSpec) error {
	h.reset = append(h.reset, spec)
	if err := h.errs["Reset"]; err != nil {
		return err
	}
	spec.Source = h.bare(spec.Source)
	_, err := work.Reset(ctx, spec)
	return err
}

func (h *host) Rebase(ctx context.Context, _ string, spec work.RebaseSpec) (work.Rebased, error) {
	spec.Source = h.bare(spec.Source)
	return work.Rebase(ctx, spec)
}

func (h *host) Collect(ctx context.Context, _ string, spec work.CollectSpec) (*changeset.Changeset, error) {
	if err := h.errs["Collect"]; err != nil {
		return nil, err
	}
	cs, err := work.Collect(ctx, spec)
	if err == nil && h.collect != nil {
		h.collect(cs) // what a hostile VM makes of it
	}
	return cs, err
}

func (h *host) Lend(ctx context.Context, _ string, spec work.LendSpec) (work.Lent, error) {
	if err := h.errs["Lend"]; err != nil {
		return work.Lent{}, err
	}
	return work.Lend(ctx, spec)
}

func (h *host) Pack(ctx context.Context, _ string, spec pack.Spec, w io.Writer) (pack.Manifest, error) {
	if err := h.errs["Pack"]; err != nil {
		return pack.Manifest{}, err
	}
	spec.Home = h.home
	return pack.Pack(ctx, spec, w)
}

func (h *host) Unpack(ctx context.Context, vm string, spec pack.UnpackSpec, r io.Reader) (pack.Manifest, error) {
	h.unpacked = append(h.unpacked, vm)
	if err := h.errs["Unpack"]; err != nil {
		return pack.Manifest{}, err
	}
	spec.Home, spec.Source = h.home, h.bare(spec.Source)
	return pack.Unpack(ctx, spec, r)
}

func (h *host) Start(_ context.Context, _ string, spec runner.Spec) error {
	h.started = append(h.started, spec)
	return h.errs["Start"]
}

func (h *host) Knows(_ context.Context, _, run string) (bool, error) {
	return slices.ContainsFunc(h.started, func(s runner.Spec) bool { return s.ID == run }), h.errs["Knows"]
}

func (h *host) Stop(_ context.Context, _, run, why string) error {
	h.stopped = append(h.stopped, run+" "+why)
	return h.errs["Stop"]
}

func (h *host) Ensure(context.Context, string, state.TaskKey) error {
	h.ensured++
	return h.errs["Ensure"]
}

func (h *host) Forget(string) {}

func (h *host) RunToken(run string) string { return "token-of-" + run }

func (h *host) VMToken(vm string) string { return "token-of-" + vm }

// checkout makes the VM's checkout at the head of a branch or at a commit.
func (h *host) checkout(t *testing.T, at string) {
	t.Helper()
	h.run(t, filepath.Dir(h.dir), "clone", "--quiet", h.w.repo.Git.Dir, h.dir)
	h.git(t, "checkout", "--quiet", "-B", h.w.task.Branch.Name, at)
	h.w.task.VM = &h.vm
}

// commit makes a commit in the checkout as an agent would; an empty content deletes.
func (h *host) commit(t *testing.T, message string, files map[string]string) string {
	t.Helper()
	h.write(t, files)
	h.git(t, "add", "-A")
	h.git(t, "commit", "--quiet", "-m", message)
	return h.git(t, "rev-parse", "HEAD")
}

func (h *host) write(t *testing.T, files map[string]string) {
	t.Helper()
	for path, content := range files {
		full := filepath.Join(h.dir, path)
		check(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if content == "" {
			check(t, os.Remove(full))
			continue
		}
		check(t, os.WriteFile(full, []byte(content), 0o644))
	}
}

func (h *host) git(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSpace(h.run(t, h.dir, args...))
}

func (h *host) run(t *testing.T, dir string, args ...string) string {
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
