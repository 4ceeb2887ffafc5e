package upgrade_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// brief is a JSON object, with the beginning of the SHA-256 in place of long fields.
func brief(v any) map[string]string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		panic(err)
	}
	out := map[string]string{}
	for k, f := range fields {
		out[k] = short(f)
	}
	return out
}

// short returns a value as JSON with sorted keys, or the beginning of its hash.
func short(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if len(data) <= 24 {
		return string(data)
	}
	return digest(data)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "#" + hex.EncodeToString(sum[:5])
}

type readDelivery struct {
	GUID      string    `json:"guid"`
	Event     string    `json:"event"`
	Received  time.Time `json:"received"`
	Failures  int       `json:"failures,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	Tried     time.Time `json:"tried,omitzero"`
	Bytes     int       `json:"bytes"`
	SHA256    string    `json:"sha256"`
}

func deliveries(list []store.Delivery) (out []readDelivery) {
	for _, d := range list {
		out = append(out, readDelivery{d.GUID, d.Event, d.Received, d.Failures, d.LastError, d.Tried, len(d.Payload), digest(d.Payload)})
	}
	return out
}

// reading is the content of the database as the store reads it.
type reading struct {
	Tasks   map[string]map[string]string   `json:"tasks"`
	Jobs    map[string]map[string]string   `json:"jobs"`
	PRs     map[string]string              `json:"prs"`
	Phases  map[state.Phase]int            `json:"phases"`
	Pending []readDelivery                 `json:"pending"`
	Poison  []readDelivery                 `json:"poison"`
	Spent   []string                       `json:"spent"`
	VMs     map[string]map[string]string   `json:"vms"`
	Bills   map[string][]vm.Bill           `json:"bills"`  // by day: sums of the day and of its month
	Purses  map[string][]state.Money       `json:"purses"` // likewise
	VMTimes vm.Times                       `json:"vm_times"`
	Since   time.Time                      `json:"vms_since"`
	Models  map[string]state.ProviderState `json:"upstreams"`
	Facts   map[string]string              `json:"facts"`
	Raw     map[string]string              `json:"raw"` // raw values that no method returns
	Due     time.Time                      `json:"due"`

	invented map[string]bool // the jobs whose event has every field set
}

// reader reads a database with the current store.
type reader struct {
	*testing.T
	db    kv.DB
	store *store.Store
	out   reading
}

func (r *reader) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// read opens the store of a database and reads everything in it.
func read(t *testing.T, db kv.DB) reading {
	t.Helper()
	now := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
	st, err := store.Open(t.Context(), db, store.Options{Now: func() time.Time { return now }})
	r := &reader{T: t, db: db, store: st, out: reading{
		Tasks: map[string]map[string]string{}, Jobs: map[string]map[string]string{}, PRs: map[string]string{}, VMs: map[string]map[string]string{},
		Bills: map[string][]vm.Bill{}, Purses: map[string][]state.Money{}, Facts: map[string]string{}, Raw: map[string]string{}, invented: map[string]bool{},
	}}
	r.must(err)
	r.tasks()
	r.deliveries()
	r.vms()
	r.rest()
	return r.out
}

func (r *reader) tasks() {
	ctx := r.Context()
	for after := (state.TaskKey{}); ; {
		tasks, err := r.store.AllTasks(ctx, after, 50)
		r.must(err)
		if len(tasks) == 0 {
			break
		}
		for _, task := range tasks {
			after = task.Key
			r.out.Tasks[task.Key.String()] = brief(task)
			jobs, err := r.store.Jobs(ctx, task.Key)
			r.must(err)
			for _, j := range jobs {
				r.out.Jobs[j.ID] = brief(j)
				if j.Kind == state.JobDue && j.Args.Key == "" { // 403b8aa stored the empty key, too
					data, err := json.Marshal(j.Args)
					r.must(err)
					args := map[string]any{}
					r.must(json.Unmarshal(data, &args))
					args["key"] = ""
					r.out.Jobs[j.ID]["args"] = short(args)
				}
				if j.Kind == state.JobVet {
					var stored map[string]any
					r.must(json.Unmarshal(j.Event, &stored))
					r.out.invented[j.ID] = invented(stored)
				}
			}
			if task.PR != nil {
				by, err := r.store.TaskByPR(ctx, task.Key.Repo, task.PR.Number)
				r.must(err)
				r.out.PRs[fmt.Sprintf("%d/%d", task.Key.Repo, task.PR.Number)] = by.Key.String()
			}
		}
	}
	var err error
	r.out.Phases, err = r.store.Counts(ctx)
	r.must(err)
	r.out.Due, _, err = r.store.NextDue(ctx)
	r.must(err)
}

func (r *reader) deliveries() {
	ctx := r.Context()
	list, err := r.store.PendingDeliveries(ctx, 0)
	r.must(err)
	r.out.Pending = deliveries(list)
	list, err = r.store.PoisonDeliveries(ctx, 0)
	r.must(err)
	r.out.Poison = deliveries(list)
	r.must(r.db.Scan(ctx, "tomb/", "", 0, func(p kv.Pair) error {
		guid := p.Key[strings.LastIndexByte(p.Key, '/')+1:]
		known, err := r.store.HasDelivery(ctx, guid)
		if known {
			r.out.Spent = append(r.out.Spent, guid)
		}
		return err
	}))
}

func (r *reader) vms() {
	ctx := r.Context()
	rows, err := r.store.VMs.List(ctx)
	r.must(err)
	for _, row := range rows {
		r.out.VMs[row.Name] = brief(row)
	}
	r.out.VMTimes, err = r.store.VMs.Times(ctx)
	r.must(err)
	r.out.Since, err = r.store.VMs.Since(ctx)
	r.must(err)
}

func (r *reader) rest() {
	ctx := r.Context()
	for day := 1; day <= 31; day++ {
		at := time.Date(2026, 3, day, 23, 59, 0, 0, time.UTC)
		onDay, inMonth, err := r.store.VMs.Spent(ctx, at)
		r.must(err)
		r.out.Bills[at.Format("2006-01-02")] = []vm.Bill{onDay, inMonth}
		spentOnDay, spentInMonth, err := r.store.Spending.Spent(ctx, at)
		r.must(err)
		r.out.Purses[at.Format("2006-01-02")] = []state.Money{spentOnDay, spentInMonth}
	}
	var err error
	r.out.Models, err = r.store.ProviderStates.All(ctx)
	r.must(err)
	for _, name := range []string{"fleet/refused", "bot"} {
		v, err := r.store.Fact(ctx, name)
		r.must(err)
		r.out.Facts[name] = string(v)
	}
	for _, prefix := range []string{"vms", "vmbill/", "jobseq/"} {
		r.must(r.db.Scan(ctx, prefix, "", 0, func(p kv.Pair) error {
			var v any
			if json.Unmarshal(p.Value, &v) != nil {
				r.out.Raw[p.Key] = digest(p.Value)
				return nil
			}
			r.out.Raw[p.Key] = short(v)
			return nil
		}))
	}
}
