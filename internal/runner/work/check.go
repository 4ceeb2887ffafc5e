package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/gates"
	"github.com/errand-bot/errand/internal/runner/maven"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// DefaultCheckTimeout bounds one check command whose Timeout is zero.
const DefaultCheckTimeout = 20 * time.Minute

// CheckSpec is the input of `check`. Checks should run as a separate run (runner.Spec with Argv {"{runner}", "check"}),
// so that they are detached and can be followed and stopped.
type CheckSpec struct {
	// Dir is the workspace. Only its objects are used, not its files.
	Dir string `json:"dir"`
	// Head is the commit to check.
	Head     string         `json:"head"`
	Commands []CheckCommand `json:"commands"`
	// Base is the commit to which Head is compared for PlaceFiles and PlaceModules in commands. The changed files are
	// also in ERRAND_CHANGED_FILES, one per line, unless the list is too long for a variable.
	Base string `json:"base,omitempty"`
	// Gates are judged after all commands succeeded, by the reports that these wrote into the worktree.
	Gates gates.Gates `json:"gates,omitzero"`
	// GateBase is the commit to which Head is compared for gates; empty means Base.
	GateBase string `json:"gate_base,omitempty"`
	// Files are written into the worktree before the first command and replace existing files.
	Files []TestFile `json:"files,omitempty"`
	// Env is added to a small environment with a fresh HOME and TMPDIR. It may contain the paths of caches, such as
	// GOCACHE; the caller decides which caches are shared with the agent's runs.
	Env map[string]string `json:"env,omitempty"`
	// Isolation requests weaker isolation than the best available.
	Isolation proc.Isolation `json:"isolation,omitempty"`
}

// CheckCommand is one check, for sh.
type CheckCommand struct {
	Name    string        `json:"name"`
	Command string        `json:"command"`
	Timeout time.Duration `json:"timeout,omitempty"`
	// BeforePR runs the command after those without it, and only if all others before it succeeded.
	BeforePR bool `json:"before_pr,omitempty"`
}

// The types of the lines on standard output. The output of the commands goes to standard error.
const (
	TypeCheckResult = "check_result"
	TypeChecksDone  = "checks_done"
)

// CheckResult is the result of a command or a gate. Tail is the end of the command's output, at most 100 lines and 16 kB, or
// why the gate failed.
type CheckResult struct {
	Type     string        `json:"type"`
	Name     string        `json:"name"`
	Code     int           `json:"code"`
	Duration time.Duration `json:"duration"`
	Tail     string        `json:"tail"`
	TimedOut bool          `json:"timed_out,omitempty"`
	// Skipped is the reason why the command was not run; Code is 0 then.
	Skipped string `json:"skipped,omitempty"`
	// Gate marks the result of a gate, whose Code is 0 or 1. Its name has the figure.
	Gate bool `json:"gate,omitempty"`
}

// ChecksDone is the last line. OK means that every command ran and exited with 0. Error is the reason why the checks
// could not be run.
type ChecksDone struct {
	Type  string `json:"type"`
	OK    bool   `json:"ok"`
	Head  string `json:"head"`
	Tree  string `json:"tree,omitempty"`
	Error string `json:"error,omitempty"`
}

// Check runs all commands, one after the other, in a fresh worktree of the commit that shares only the objects with the
// workspace, and with a fresh home. It writes results to out as they arrive, and the commands' output to log. It must
// run in a separate process, because it ends all processes that a command left.
func Check(ctx context.Context, root string, spec CheckSpec, out, log io.Writer) error {
	encoder := json.NewEncoder(out)
	done := ChecksDone{Type: TypeChecksDone, Head: spec.Head}
	ok, err := check(ctx, root, spec, &done, encoder, log)
	done.OK = ok && err == nil
	if err != nil {
		done.Error = err.Error()
	}
	return errors.Join(err, encoder.Encode(done))
}

func check(ctx context.Context, root string, spec CheckSpec, done *ChecksDone, out *json.Encoder, log io.Writer) (bool, error) {
	place, err := newCheckPlace(ctx, root, spec)
	if err != nil {
		return false, fmt.Errorf("make worktree: %w", err)
	}
	defer place.remove()
	done.Tree = place.tree
	if place.changed, err = place.compare(ctx, spec.Base, spec.Head); err != nil && spec.usesChanges() {
		return false, err
	}
	if err := place.lend(spec.Files); err != nil {
		return false, fmt.Errorf("put the files for tests into the worktree: %w", err)
	}
	if home, err := os.UserHomeDir(); err == nil {
		if err := maven.Write(home, spec.Env); err != nil {
			_, _ = fmt.Fprintf(log, "errand: %v; downloads of Maven fail\n", err)
		}
	}
	if !spec.Gates.Enabled() {
		return place.runAll(ctx, spec, out, log)
	}
	in := place.readGateInput(ctx, spec)
	ok, err := place.runAll(ctx, spec, out, log)
	if err != nil {
		return false, err
	}
	results := gates.Skip(spec.Gates, skippedAfterFailure)
	if ok {
		results = place.judge(ctx, spec.Gates, in)
	}
	for _, result := range gateResults(results) {
		ok = ok && result.Code == 0
		if err := out.Encode(result); err != nil {
			return false, fmt.Errorf("write result: %w", err)
		}
	}
	return ok, nil
}

// runAll runs the commands, and reports whether none of them failed.
func (p *checkPlace) runAll(ctx context.Context, spec CheckSpec, out *json.Encoder, log io.Writer) (bool, error) {
	isolation := spec.Isolation
	if isolation == "" {
		isolation = proc.Probe()
	}
	ok := true
	for _, c := range inOrder(spec.Commands) {
		result := CheckResult{Type: TypeCheckResult, Name: c.Name, Skipped: skippedAfterFailure}
		if ok || !c.BeforePR {
			var err error
			if result, err = p.run(ctx, c, spec, isolation, log); err != nil {
				return false, fmt.Errorf("run check %s: %w", c.Name, err)
			}
			p.ran, p.unrun = p.ran || result.Skipped == "", p.unrun || result.Skipped != ""
		}
		ok = ok && result.Code == 0 && !result.TimedOut
		if err := out.Encode(result); err != nil {
			return false, fmt.Errorf("write result: %w", err)
		}
	}
	return ok, nil
}

// checkPlace is the directory of one check.
type checkPlace struct {
	dir     string // contains tree/, home/ and tmp/
	tree    string
	changed difference
	ran     bool // a command ran
	unrun   bool // a command was skipped, because it had nothing to run on
}

// stalePlaceAge is the age at which the directory of a killed check is removed.
const stalePlaceAge = 24 * time.Hour

func newCheckPlace(ctx context.Context, root string, spec CheckSpec) (_ *checkPlace, err error) {
	if !changeset.IsID(spec.Head) {
		return nil, fmt.Errorf("%q is not a commit id", spec.Head)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	removeStale(root)
	dir, err := os.MkdirTemp(root, "check-")
	if err != nil {
		return nil, err
	}
	p := &checkPlace{dir: dir}
	defer func() {
		if err != nil {
			p.remove()
		}
	}()
	for _, name := range []string{"tree", "home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	if err := p.checkOut(ctx, spec); err != nil {
		return nil, err
	}
	return p, nil
}

// checkOut creates a separate repository that borrows the workspace's objects and copies its refs. A linked worktree
// would share the configuration, which the agent may have written.
func (p *checkPlace) checkOut(ctx context.Context, spec CheckSpec) error {
	from, to := openRepo(spec.Dir), openRepo(filepath.Join(p.dir, "tree"))
	common, err := from.text(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return err
	}
	if _, err := to.run(ctx, "init", "--quiet", "--template=", "--initial-branch=check", "."); err != nil {
		return err
	}
	alternates := filepath.Join(to.dir, ".git", "objects", "info", "alternates")
	if err := os.MkdirAll(filepath.Dir(alternates), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(alternates, []byte(filepath.Join(common, "objects")+"\n"), 0o644); err != nil {
		return err
	}
	shallow, err := os.ReadFile(filepath.Join(common, "shallow"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to.dir, ".git", "shallow"), shallow, 0o644)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	refs, err := from.text(ctx, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/remotes", "refs/tags")
	if err != nil {
		return err
	}
	if refs != "" {
		if _, err := to.pipe(ctx, strings.NewReader(withoutHeads(refs)), "update-ref", "--stdin"); err != nil {
			return err
		}
	}
	if err := to.borrowLarge(ctx, filepath.Join(common, "lfs")); err != nil {
		return err
	}
	if _, err := to.run(ctx, "checkout", "--quiet", "--force", "--detach", spec.Head); err != nil {
		return err
	}
	p.tree, err = to.tree(ctx, "HEAD")
	return err
}

// withoutHeads removes symbolic refs such as origin/HEAD.
func withoutHeads(refs string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(refs, "\n") {
		if !strings.Contains(line, "/HEAD ") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// remove deletes the directory, including read-only directories of build tools.
func (p *checkPlace) remove() {
	_ = filepath.WalkDir(p.dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(p.dir)
}

// removeStale deletes the directories of killed checks, as far as possible.
func removeStale(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && strings.HasPrefix(entry.Name(), "check-") && time.Since(info.ModTime()) > stalePlaceAge {
			(&checkPlace{dir: filepath.Join(root, entry.Name())}).remove()
		}
	}
}

// maxVariable bounds a variable, and a command as an argument of sh, in bytes. Linux accepts 128 KiB.
const maxVariable = 96 << 10

func (p *checkPlace) environment(spec CheckSpec) []string {
	vars := map[string]string{
		"PATH": os.Getenv("PATH"), "LANG": orText(os.Getenv("LANG"), "C.UTF-8"),
		"USER": os.Getenv("USER"), "CI": "true",
	}
	if list := strings.Join(p.changed.files, "\n"); len(list) <= maxVariable {
		vars["ERRAND_CHANGED_FILES"] = list
	}
	maps.Copy(vars, spec.Env)
	vars["HOME"], vars["TMPDIR"] = filepath.Join(p.dir, "home"), filepath.Join(p.dir, "tmp")
	if mark := os.Getenv(proc.MarkVariable); mark != "" {
		vars[proc.MarkVariable] = mark
	}
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}
