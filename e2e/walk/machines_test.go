package walk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/taskvm"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// machines are the VMs and their runs. They survive errand's death, like real ones.
type machines struct {
	workflow.Runner // calls that no walk plays: a step that makes one panics
	w               *world
	list            []*walkVM
	full            time.Time // no VM is available until then
	slots           int       // the maximum number of VMs that errand may create
	account         int       // the provider's limit, 0 for none
	refused         time.Time // when the provider last refused a VM because of it, as errand remembers it
	intended        []vm.Row  // of VMs that it refused
	runs            int
	spends          int64 // true cost of all agents, in millionths of a dollar
}

type walkVM struct {
	name, owner string
	created     time.Time
	ended       bool      // released, or lost
	endedAt     time.Time // when it ended
	deaf        time.Time // unreachable until then
	deafSince   time.Time
	given       string // why its work need not be kept
	branch      string
	root        string // base commit of the work
	work        []changeset.Commit
	blobs       map[string][]byte
	runs        []*run
	garbled     string // the last unreadable closing block
}

var (
	_ taskvm.Fleet    = (*machines)(nil)
	_ workflow.Runner = (*machines)(nil)
	_ workflow.Tether = (*machines)(nil)
)

var errDeaf = errors.New("the VM cannot be reached")

func (m *machines) alive() (n int) {
	for _, o := range m.list {
		if !o.ended {
			n++
		}
	}
	return n
}

// Release deletes a VM and its runs.
func (m *machines) Release(ctx context.Context, name string, _ state.VMEndReason) error {
	return m.w.gate(ctx, "release VM", true, func() error {
		for _, o := range m.list {
			if o.name == name && !o.ended && !m.w.plant.keepVMs {
				m.w.works.checkWorkKept(o, "VM "+name+" is deleted")
				o.end(m.w)
			}
		}
		return nil
	})
}

// end ends a VM and its runs.
func (o *walkVM) end(w *world) {
	o.ended, o.endedAt = true, w.now
	for _, r := range o.runs {
		if r.exit == nil {
			w.meter(r, r.cost/2)
			r.exit = &runlog.Exit{Cause: runlog.CauseLost}
		}
	}
}

// on passes the gate and returns a reachable VM.
func (m *machines) on(ctx context.Context, op, name string, effect func(o *walkVM) error) error {
	return m.w.gate(ctx, op, true, func() error {
		for _, o := range m.list {
			switch {
			case o.name != name:
			case o.ended:
				return fmt.Errorf("%s: %w", op, fleet.ErrEnded)
			case m.w.now.Before(o.deaf):
				return fmt.Errorf("%s: %w", op, errDeaf)
			default:
				return effect(o)
			}
		}
		return fmt.Errorf("%s: %w", op, fleet.ErrNotFound)
	})
}

func (m *machines) Place(ctx context.Context, vm string) (runnerctl.Place, error) {
	err := m.on(ctx, "place", vm, func(*walkVM) error { return nil })
	return runnerctl.Place{Runner: "/bin/errand-runner", Home: "/home/agent", Dir: "/work", BaseURL: "http://127.0.0.1:9", Isolated: true}, err
}

// Prepare creates the checkout, or keeps an existing one.
func (m *machines) Prepare(ctx context.Context, vm string, spec work.PrepareSpec) (at work.Place, err error) {
	err = m.on(ctx, "prepare", vm, func(o *walkVM) error {
		m.quiet(o, "prepare", "")
		if o.branch == spec.Branch {
			at = work.Place{Head: o.head()}
			return nil
		}
		if m.w.hub.commits[spec.Base] == nil {
			return fmt.Errorf("no commit %s", spec.Base)
		}
		m.w.works.checkWorkKept(o, "VM "+vm+" gets a new checkout")
		o.branch, o.root, o.work = spec.Branch, spec.Base, nil
		at = work.Place{Head: spec.Base, Created: true}
		return nil
	})
	return at, err
}

func (o *walkVM) head() string {
	if n := len(o.work); n > 0 {
		return o.work[n-1].ID
	}
	return o.root
}

func (m *machines) Reset(ctx context.Context, vm string, spec work.ResetSpec) error {
	return m.on(ctx, "reset", vm, func(o *walkVM) error {
		m.quiet(o, "reset", "")
		if m.w.hub.commits[spec.Head] == nil {
			return fmt.Errorf("no commit %s", spec.Head)
		}
		m.w.works.checkWorkKept(o, "the checkout on VM "+vm+" is moved to another commit")
		o.branch, o.root, o.work = spec.Branch, spec.Head, nil
		return nil
	})
}

func (m *machines) Rebase(ctx context.Context, vm string, spec work.RebaseSpec) (out work.Rebased, err error) {
	err = m.on(ctx, "rebase", vm, func(o *walkVM) error {
		m.quiet(o, "rebase", "")
		onto := m.w.hub.commits[spec.Onto]
		if onto == nil {
			return fmt.Errorf("no commit %s", spec.Onto)
		}
		if onto.conflict {
			out = work.Rebased{Conflicts: []string{"src/a.go"}}
			return nil
		}
		o.root = spec.Onto
		for i := range o.work {
			o.work[i].ID = m.w.localID()
		}
		out = work.Rebased{OK: true, Place: work.Place{Head: o.head()}}
		return nil
	})
	return out, err
}

// Collect reads the commits since the base; history with another base becomes one commit.
func (m *machines) Collect(ctx context.Context, vm string, spec work.CollectSpec) (cs *changeset.Changeset, err error) {
	err = m.on(ctx, "collect", vm, func(o *walkVM) error {
		m.quiet(o, "collect", "")
		base := spec.Base
		if spec.Newer != "" && o.root == spec.Newer {
			base = spec.Newer
		}
		cs = &changeset.Changeset{Base: base, Blobs: o.blobs}
		for _, c := range o.work {
			merged := slices.DeleteFunc(slices.Clone(c.Parents), func(p string) bool { return !slices.Contains(spec.AllowMerge, p) })
			c.Parents = append([]string{cs.Head()}, merged...)
			cs.Commits = append(cs.Commits, c)
		}
		return nil
	})
	return cs, err
}

// localID creates a commit ID on a VM.
func (w *world) localID() string { return "e" + w.hub.sha()[1:] }

func (m *machines) Ensure(ctx context.Context, vm string, _ state.TaskKey) error {
	return m.on(ctx, "attach tether", vm, func(*walkVM) error { return nil })
}

func (m *machines) RunToken(run string) string { return "token-of-" + run }

func (m *machines) VMToken(vm string) string { return "token-of-" + vm }

// files is the directory of archives.
type files struct {
	workflow.Files
	w *world
}

func (m files) SaveDiff(string, string) error { return nil }

func (m files) SaveChangeset(run string, cs *changeset.Changeset) (string, error) {
	copied := *cs
	copied.Commits = slices.Clone(cs.Commits)
	m.w.files[run] = &copied
	return run, nil
}

func (m files) LoadChangeset(ref string) (*changeset.Changeset, error) {
	cs, ok := m.w.files[ref]
	if !ok {
		return nil, fmt.Errorf("no changeset %s", ref)
	}
	return cs, nil
}

func (m files) BeginTranscript(string, runlog.Header) error { return nil }

// transcript discards the transcripts, which walks do not need.
type transcript struct{}

var _ watch.Transcript = transcript{}

func (transcript) Add(runlog.Line, []runlog.Event) error { return nil }
func (transcript) End(runlog.End) error                  { return nil }
func (transcript) Close() error                          { return nil }

// Start begins a run; it does nothing if the ID exists.
func (m *machines) Start(ctx context.Context, vm string, spec runner.Spec) error {
	return m.on(ctx, "start run", vm, func(o *walkVM) error {
		m.quiet(o, "start run", spec.ID)
		if o.run(spec.ID) == nil {
			o.given = ""
			r := m.w.newRun(o, spec)
			o.runs = append(o.runs, r)
			m.w.model.started(r)
		}
		return nil
	})
}

func (o *walkVM) run(id string) *run {
	i := slices.IndexFunc(o.runs, func(r *run) bool { return r.spec.ID == id })
	if i < 0 {
		return nil
	}
	return o.runs[i]
}

func (m *machines) Knows(ctx context.Context, vm, id string) (known bool, err error) {
	err = m.on(ctx, "ask for run", vm, func(o *walkVM) error {
		known = o.run(id) != nil
		return nil
	})
	if errors.Is(err, fleet.ErrEnded) || errors.Is(err, fleet.ErrNotFound) {
		return false, err
	}
	return known, err
}

func (m *machines) Runs(ctx context.Context, vm string) (ids []string, err error) {
	return ids, m.on(ctx, "list runs", vm, func(o *walkVM) error {
		ids = nil
		for _, r := range o.runs {
			ids = append(ids, r.spec.ID)
		}
		return nil
	})
}

func (m *machines) Stop(ctx context.Context, vm, id, _ string) error {
	return m.on(ctx, "stop run", vm, func(o *walkVM) error {
		if r := o.run(id); r != nil && r.exit == nil {
			m.w.endRun(r, runlog.CauseStopped)
		}
		return nil
	})
}

// follow returns a run's log: the lines so far, then the exit or a lost connection.
func (m *machines) follow(ctx context.Context, vm, id string, from int64) (watch.Records, error) {
	var r *run
	err := m.on(ctx, "follow", vm, func(o *walkVM) error {
		if r = o.run(id); r == nil {
			return runnerctl.ErrUnknownRun
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rec := &records{list: []runlog.Record{{}}} // a heartbeat
	for _, l := range r.lines {
		if l.Seq > from {
			rec.list = append(rec.list, runlog.Record{Line: &l})
		}
	}
	if r.exit != nil {
		rec.list = append(rec.list, runlog.Record{Exit: r.exit})
	}
	return rec, nil
}

type records struct{ list []runlog.Record }

func (r *records) Next() (runlog.Record, error) {
	if len(r.list) == 0 {
		return runlog.Record{}, io.EOF
	}
	next := r.list[0]
	r.list = r.list[1:]
	return next, nil
}

func (r *records) Close() error { return nil }

// isLost reports whether the server interprets an error as the loss of a VM or run.
func isLost(err error) bool {
	return errors.Is(err, fleet.ErrEnded) || errors.Is(err, fleet.ErrNotFound) || errors.Is(err, runnerctl.ErrUnknownRun)
}

// reap deletes VMs that belong to no task, like the fleet's reaper after its grace period.
func (m *machines) reap(owned map[string]bool) {
	for _, o := range m.list {
		if !o.ended && !owned[o.name] && !m.w.plant.keepVMs {
			m.w.works.checkWorkKept(o, "VM "+o.name+", which belongs to no task, is deleted")
			o.end(m.w)
		}
	}
}

func stepOf(spec runner.Spec) string {
	for line := range strings.Lines(spec.Stdin) {
		if step, ok := strings.CutPrefix(strings.TrimSpace(line), "errand-step: "); ok {
			return step
		}
	}
	return "check"
}
