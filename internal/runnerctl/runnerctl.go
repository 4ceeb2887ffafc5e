// Package runnerctl is the orchestrator's client of errand-runner on VMs, over SSH.
//
// Each method runs one subcommand of errand-runner with JSON input and output. If the provider has not installed the
// runner's binary on the VM, it is copied there first. Every method may be called again after any failure, because the
// subcommands are repeatable. Answers come from a VM and are untrusted: their size is bounded, and changesets are
// validated.
//
// Start here: [New] and [Controller.Start].
package runnerctl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/roots"
	"github.com/errand-bot/errand/internal/runner/tetherd"
	"github.com/errand-bot/errand/internal/runner/work"
)

// Fleet gives access to VMs.
type Fleet interface {
	// Client returns the connection of the agent's user.
	Client(ctx context.Context, vm string) (*remote.Client, error)
	// RunnerClient returns the connection of the user who owns the records of runs and the tether. It may be the same
	// user.
	RunnerClient(ctx context.Context, vm string) (*remote.Client, error)
	Get(ctx context.Context, vm string) (fleet.VM, error)
}

// Controller calls the runners of all VMs. It is safe for concurrent use.
type Controller struct {
	fleet Fleet
	// binDir contains errand-runner, and errand-runner-linux-ARCH for VMs with another architecture.
	binDir string

	mu    sync.Mutex
	ready map[string]string // VM name → path of the runner on it
}

// New returns a Controller. binDir is the folder with the runner's binaries.
func New(f Fleet, binDir string) *Controller {
	return &Controller{fleet: f, binDir: binDir, ready: map[string]string{}}
}

// Place holds the paths and addresses on a VM.
type Place struct {
	Runner   string // the runner's binary
	Home     string // home of the agent's user
	Dir      string // the checkout
	BaseURL  string // base URL of the tether, without a trailing slash
	Isolated bool   // the agent is isolated from this host
	// LargeFiles reports that the checkout has Git LFS files. Controller.Place leaves it false; the caller that
	// prepares the checkout sets it.
	LargeFiles bool
}

// Place returns the paths on a VM, and installs the runner there if it is missing.
func (c *Controller) Place(ctx context.Context, vm string) (Place, error) {
	facts, err := c.fleet.Get(ctx, vm)
	if err != nil {
		return Place{}, fmt.Errorf("look up VM %s: %w", vm, err)
	}
	bin, err := c.install(ctx, facts)
	if err != nil {
		return Place{}, fmt.Errorf("install the runner on VM %s: %w", vm, err)
	}
	home := facts.Facts[fleet.FactHome]
	if home == "" {
		return Place{}, fmt.Errorf("VM %s: its provider does not report the home directory", vm)
	}
	return Place{
		Runner: bin, Home: home, Dir: path.Join(home, "work"), BaseURL: fmt.Sprintf("http://127.0.0.1:%d", facts.TetherPort),
		Isolated: facts.Isolation != fleet.IsolationNone,
	}, nil
}

// install returns the path of the runner on a VM.
func (c *Controller) install(ctx context.Context, vm fleet.VM) (string, error) {
	if p := vm.Facts[fleet.FactRunner]; p != "" {
		return p, nil
	}
	c.mu.Lock()
	p := c.ready[vm.Name]
	c.mu.Unlock()
	if p != "" {
		return p, nil
	}
	cl, err := c.fleet.RunnerClient(ctx, vm.Name)
	if err != nil {
		return "", err
	}
	p, err = c.copyRunner(ctx, cl, vm)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	c.ready[vm.Name] = p
	c.mu.Unlock()
	return p, nil
}

// copyRunner copies the binary for the VM's architecture to a name that depends on its content, so that a new release
// never overwrites a binary in use.
func (c *Controller) copyRunner(ctx context.Context, cl *remote.Client, vm fleet.VM) (string, error) {
	res, err := cl.Run(ctx, remote.Cmd{Argv: []string{"uname", "-m"}})
	if err != nil {
		return "", fmt.Errorf("read the machine type: %w", err)
	}
	arch := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[strings.TrimSpace(string(res.Stdout))]
	data, err := os.ReadFile(filepath.Join(c.binDir, "errand-runner-linux-"+arch))
	if err != nil {
		return "", fmt.Errorf("find the runner for %s in the folder of the errand program (`make build` puts it there): %w", arch, err)
	}
	sum := sha256.Sum256(data)
	dir := path.Join(vm.Facts[fleet.FactHome], ".errand", "bin")
	if own := vm.Facts[fleet.FactRunnerDir]; own != "" {
		dir = own
	}
	p := path.Join(dir, "errand-runner-"+hex.EncodeToString(sum[:6]))
	if res, err := cl.Run(ctx, remote.Cmd{Argv: []string{"test", "-x", p}}); err == nil && res.Code == 0 {
		return p, nil
	}
	return p, cl.Copy(ctx, bytes.NewReader(data), int64(len(data)), p, 0o755)
}

// maxAnswer bounds the JSON answer of a subcommand in bytes.
const maxAnswer = 4 << 20

// clientFunc returns the connection of one of a VM's users.
type clientFunc func(ctx context.Context, vm string) (*remote.Client, error)

// callAgent runs a subcommand as the agent's user with in as JSON on its standard input, and decodes its answer into
// out.
func (c *Controller) callAgent(ctx context.Context, vm string, in, out any, args ...string) error {
	return c.callAs(ctx, c.fleet.Client, vm, in, out, args...)
}

// callRunner is callAgent as the user who owns the records of runs and the tether.
func (c *Controller) callRunner(ctx context.Context, vm string, in, out any, args ...string) error {
	return c.callAs(ctx, c.fleet.RunnerClient, vm, in, out, args...)
}

func (c *Controller) callAs(ctx context.Context, as clientFunc, vm string, in, out any, args ...string) error {
	var stdin io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode input of %s: %w", args[0], err)
		}
		stdin = bytes.NewReader(data)
	}
	stdout, err := c.run(ctx, as, vm, stdin, maxAnswer, args...)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(stdout, out); err != nil {
		return fmt.Errorf("read the answer of errand-runner %s: %w", strings.Join(args[:min(2, len(args))], " "), err)
	}
	return nil
}

// run runs a subcommand and returns its output.
func (c *Controller) run(ctx context.Context, as clientFunc, vm string, stdin io.Reader, limit int, args ...string) ([]byte, error) {
	place, err := c.Place(ctx, vm)
	if err != nil {
		return nil, err
	}
	cl, err := as(ctx, vm)
	if err != nil {
		return nil, fmt.Errorf("reach VM %s: %w", vm, err)
	}
	res, err := cl.Run(ctx, remote.Cmd{Argv: append([]string{place.Runner}, args...), Stdin: stdin, MaxOutput: limit})
	if err != nil {
		return nil, fmt.Errorf("run errand-runner %s on VM %s: %w", args[0], vm, err)
	}
	if err := res.Check("errand-runner " + args[0]); err != nil {
		return nil, fmt.Errorf("on VM %s: %w", vm, err)
	}
	return res.Stdout, nil
}

// Start starts a run. It does nothing if a run with this id was started before.
func (c *Controller) Start(ctx context.Context, vm string, spec runner.Spec) error {
	facts, err := c.fleet.Get(ctx, vm)
	if err != nil {
		return fmt.Errorf("look up VM %s: %w", vm, err)
	}
	if facts.Facts[fleet.FactRunnerLogin] != "" {
		spec.Become, spec.Home = []string{"sudo", "-n", "-H", "-u", facts.Endpoint.User, "--"}, facts.Facts[fleet.FactHome]
	}
	var out runner.Started
	return c.callRunner(ctx, vm, spec, &out, "start")
}

// Stop ends a run and waits until all its processes have ended. A run that never began is not an error.
func (c *Controller) Stop(ctx context.Context, vm, run, why string) error {
	var st runner.Status
	if err := c.callRunner(ctx, vm, nil, &st, "status", "--run", run); err != nil {
		return err
	}
	if st.State == runner.StateUnknown {
		return nil
	}
	var exit runlog.Exit
	return c.callRunner(ctx, vm, nil, &exit, "stop", "--run", run, "--reason", why)
}

// Knows reports whether a run was ever started on a VM. It returns false for a VM that no longer exists.
func (c *Controller) Knows(ctx context.Context, vm, run string) (bool, error) {
	var st runner.Status
	err := c.callRunner(ctx, vm, nil, &st, "status", "--run", run)
	if errors.Is(err, fleet.ErrNotFound) || errors.Is(err, fleet.ErrEnded) {
		return false, nil
	}
	return err == nil && st.State != runner.StateUnknown, err
}

// Runs returns the ids of the runs that were ever started on a VM. Nothing confirms what the VM says.
func (c *Controller) Runs(ctx context.Context, vm string) (ids []string, err error) {
	return ids, c.callRunner(ctx, vm, nil, &ids, "runs")
}

// Prepare creates the checkout, or finds an existing one.
func (c *Controller) Prepare(ctx context.Context, vm string, spec work.PrepareSpec) (work.Place, error) {
	var out work.Place
	err := c.callAgent(ctx, vm, spec, &out, "workspace", "prepare")
	return out, err
}

// Reset moves the checkout to a published commit.
func (c *Controller) Reset(ctx context.Context, vm string, spec work.ResetSpec) error {
	var out work.Place
	return c.callAgent(ctx, vm, spec, &out, "workspace", "reset")
}

// Rebase moves the agent's commits. Conflicts are part of the answer.
func (c *Controller) Rebase(ctx context.Context, vm string, spec work.RebaseSpec) (work.Rebased, error) {
	var out work.Rebased
	err := c.callAgent(ctx, vm, spec, &out, "workspace", "rebase")
	return out, err
}

// Lend writes the operator's test files into a checkout, or removes them.
func (c *Controller) Lend(ctx context.Context, vm string, spec work.LendSpec) (work.Lent, error) {
	var out work.Lent
	err := c.callAgent(ctx, vm, spec, &out, "workspace", "lend")
	if err != nil {
		return out, wrapKnown(err)
	}
	return out, nil
}

// Trust lets programs on a VM trust another authority for TLS certificates.
func (c *Controller) Trust(ctx context.Context, vm string, spec roots.Spec) error {
	var done bool
	return c.callAgent(ctx, vm, spec, &done, "trust")
}

// Put writes a file that belongs to the agent's user, unless it is there with this content, and creates missing
// directories.
func (c *Controller) Put(ctx context.Context, vm, file string, content []byte) error {
	cl, err := c.fleet.Client(ctx, vm)
	if err != nil {
		return fmt.Errorf("reach VM %s: %w", vm, err)
	}
	sum := sha256.Sum256(content)
	res, err := cl.Run(ctx, remote.Cmd{Argv: []string{"sha256sum", "--", file}, MaxOutput: 4096})
	if err == nil && res.Code == 0 && bytes.HasPrefix(res.Stdout, []byte(hex.EncodeToString(sum[:])+" ")) {
		return nil
	}
	return cl.Copy(ctx, bytes.NewReader(content), int64(len(content)), file, 0o644)
}

// maxChangeset bounds a changeset on the wire in bytes: 64 MiB of content in base64, and the rest.
const maxChangeset = 128 << 20

// Collect returns the validated changeset of a checkout.
func (c *Controller) Collect(ctx context.Context, vm string, spec work.CollectSpec) (*changeset.Changeset, error) {
	args := []string{"changeset", "--dir", spec.Dir, "--base", spec.Base, "--message", spec.Message}
	if spec.Newer != "" {
		args = append(args, "--newer", spec.Newer)
	}
	for _, m := range spec.AllowMerge {
		args = append(args, "--allow-merge", m)
	}
	for _, p := range spec.Leave {
		args = append(args, "--leave", p)
	}
	out, err := c.run(ctx, c.fleet.Client, vm, nil, maxChangeset, args...)
	var exit *remote.ExitError
	switch {
	case errors.Is(err, remote.ErrTooMuchOutput), errors.As(err, &exit) && strings.Contains(exit.Stderr, changeset.ErrTooLarge.Error()):
		return nil, fmt.Errorf("%w: %w", changeset.ErrTooLarge, err)
	case err != nil:
		return nil, err
	}
	cs, err := changeset.Decode(bytes.NewReader(out), changeset.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("changeset from VM %s: %w", vm, err)
	}
	if cs.Base != spec.Base && (spec.Newer == "" || cs.Base != spec.Newer) {
		return nil, fmt.Errorf("%w: it begins at %s, not at %s", changeset.ErrMalformed, cs.Base, spec.Base)
	}
	return cs, nil
}

// ErrUnknownRun means that the run was never started on the VM.
var ErrUnknownRun = errors.New("the VM knows no such run")

// Gone reports whether an error means that the VM and its data are permanently gone.
func Gone(err error) bool {
	return errors.Is(err, fleet.ErrEnded) || errors.Is(err, fleet.ErrNotFound)
}

// Follow streams a run's records after line number from, until the result is closed.
func (c *Controller) Follow(ctx context.Context, vm, run string, from int64) (*Followed, error) {
	place, err := c.Place(ctx, vm)
	if err != nil {
		return nil, err
	}
	var st runner.Status
	if err := c.callRunner(ctx, vm, nil, &st, "status", "--run", run); err != nil {
		return nil, err
	}
	if st.State == runner.StateUnknown {
		return nil, fmt.Errorf("follow run %s on VM %s: %w", run, vm, ErrUnknownRun)
	}
	cl, err := c.fleet.RunnerClient(ctx, vm)
	if err != nil {
		return nil, fmt.Errorf("reach VM %s: %w", vm, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	out, _, err := cl.Stream(ctx, remote.Cmd{Argv: []string{place.Runner, "follow", "--run", run, "--from", fmt.Sprint(from)}})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("follow run %s on VM %s: %w", run, vm, err)
	}
	return &Followed{Reader: runlog.NewReader(out, from), out: out, cancel: cancel}, nil
}

// Followed is a run's log as it grows.
type Followed struct {
	*runlog.Reader
	out    io.Closer
	cancel context.CancelFunc
}

// Close ends the stream.
func (f *Followed) Close() error {
	f.cancel()
	return f.out.Close()
}

// Attach ensures that the VM's end of the tether is served, and attaches to it. The returned stream carries a yamux
// session whose server is the caller.
func (c *Controller) Attach(ctx context.Context, vm string) (io.ReadWriteCloser, error) {
	facts, err := c.fleet.Get(ctx, vm)
	if err != nil {
		return nil, fmt.Errorf("look up VM %s: %w", vm, err)
	}
	var st tetherd.Status
	if err := c.callRunner(ctx, vm, nil, &st, "tether", "serve", "--detach", "--listen", fmt.Sprintf("127.0.0.1:%d", facts.TetherPort)); err != nil {
		return nil, fmt.Errorf("serve the tether: %w", err)
	}
	place, err := c.Place(ctx, vm)
	if err != nil {
		return nil, err
	}
	cl, err := c.fleet.RunnerClient(ctx, vm)
	if err != nil {
		return nil, fmt.Errorf("reach VM %s: %w", vm, err)
	}
	rw, err := cl.Attach(ctx, remote.Cmd{Argv: []string{place.Runner, "tether", "attach"}})
	if err != nil {
		return nil, fmt.Errorf("attach to the tether of VM %s: %w", vm, err)
	}
	return rw, nil
}
