package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/admin/transcript"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// VMs reads VMs and their cost. [vm.Rows] implements it.
type VMs interface {
	List(ctx context.Context) ([]vm.Row, error)
	Spent(ctx context.Context, at time.Time) (day, month vm.Bill, err error)
	Times(ctx context.Context) (vm.Times, error)
}

var _ VMs = (*vm.Rows)(nil)

// Alarm is a resource at the VM provider that errand does not manage and that needs a person's attention.
type Alarm struct {
	Kind   string    `json:"kind"`
	ID     string    `json:"id"`
	Name   string    `json:"name,omitempty"`
	Reason string    `json:"why"`
	Since  time.Time `json:"since"`
}

// maxVMs is the number of ended VMs shown, the newest ones.
const maxVMs = 100

// vmBoard is the content of /vms and /vms.json. Fields may be added but never change. Money is in units of its
// currency, durations are in seconds.
type vmBoard struct {
	At     time.Time `json:"at"`
	Source Source    `json:"source"`
	// VMs are the live and requested ones, oldest first; Ended those of about the last day.
	VMs   []vmRow `json:"vms"`
	Ended []vmRow `json:"ended"`
	// Today and Month are by UTC and include reservations for current VMs.
	Today  vmSum   `json:"today"`
	Month  vmSum   `json:"month"`
	Alarms []Alarm `json:"alarms"`
	// Took are recent durations.
	Took []vmTook `json:"took,omitempty"`
	Most int      `json:"most"` // limits.vms
}

// vmRow is the summary of a VM.
type vmRow struct {
	Name     string     `json:"name"`
	Phase    vm.Phase   `json:"phase"`
	Since    time.Time  `json:"since"`
	For      string     `json:"for,omitempty"`  // the task as OWNER/NAME#ISSUE, or another purpose
	Page     string     `json:"page,omitempty"` // page of that task
	Provider string     `json:"provider"`
	Kind     string     `json:"kind,omitempty"`
	Location string     `json:"location,omitempty"`
	ID       string     `json:"id,omitempty"`
	Created  *time.Time `json:"created,omitempty"`
	Gone     *time.Time `json:"gone,omitempty"`
	// Price is for one billing span, Spans the number of started spans, Cost their product.
	Price     float64           `json:"price,omitempty"`
	Spans     int64             `json:"spans,omitempty"`
	Cost      float64           `json:"cost,omitempty"`
	Currency  string            `json:"currency,omitempty"`
	Until     *time.Time        `json:"paid_until,omitempty"`
	Image     string            `json:"image,omitempty"` // of a suspended disk
	EndReason state.VMEndReason `json:"why,omitempty"`
	Detail    string            `json:"detail,omitempty"`

	micro, microSpan int64
	paid             time.Duration
}

// vmSum is the cost of VMs and images in a day or month; a cap of 0 means none.
type vmSum struct {
	Cost     float64 `json:"cost"`
	Images   float64 `json:"images,omitempty"` // part of Cost for images
	Cap      float64 `json:"cap"`
	Currency string  `json:"currency,omitempty"`
	VMs      int     `json:"vms"`
	Spans    int64   `json:"spans"`
	Hours    float64 `json:"hours"`

	micro, microImages, microCap int64
}

// vmTook is the recent duration of one operation.
type vmTook struct {
	What  string  `json:"what"`
	Times int     `json:"times"`
	P50   float64 `json:"p50_seconds"`
	P95   float64 `json:"p95_seconds"`

	half, most time.Duration
}

func units(micro int64) float64 { return float64(micro) / 1e6 }

func newSum(b vm.Bill, most int64) vmSum {
	return vmSum{
		Cost:        units(b.Micro),
		Images:      units(b.Images),
		Cap:         units(most),
		Currency:    b.Currency,
		VMs:         b.VMs,
		Spans:       b.Spans,
		Hours:       b.Time.Hours(),
		micro:       b.Micro,
		microImages: b.Images,
		microCap:    most,
	}
}

// newVMRow returns the page's row of a VM.
func newVMRow(r *vm.Row, now time.Time) vmRow {
	bill := r.Bill(now)
	v := vmRow{
		Name: r.Name, Phase: r.Phase, Since: r.Since, Provider: r.Provider, Kind: r.Kind, Location: r.Location, ID: r.ID,
		Created: known(r.CreatedAt), Gone: known(r.EndedAt), Spans: bill.Spans, Cost: units(bill.Micro), Currency: r.Currency,
		Image: r.Snapshot, EndReason: r.EndReason, Detail: transcript.Cut(r.Detail).Text, micro: bill.Micro,
	}
	if r.Paid > 0 {
		v.Price, v.microSpan, v.paid = units(r.MicroHour), r.MicroHour, r.Paid
		if !r.CreatedAt.IsZero() && r.EndedAt.IsZero() {
			until := r.CreatedAt.Add(time.Duration(r.Skip+bill.Spans) * r.Paid)
			v.Until = &until
		}
	}
	switch {
	case r.Standby:
		v.For = "the next task of its repository"
	case r.Task.IsZero():
		v.For = r.Owner
	default:
		v.For = "task " + r.Task.String()
	}
	return v
}

// vmBoard collects the part of the page that a viewer may see: people see the VMs of the tasks that they may see.
func (p *pages) vmBoard(ctx context.Context, viewer login.Viewer) (*vmBoard, error) {
	ctx, cancel := context.WithTimeout(ctx, boardTime)
	defer cancel()
	now := p.cfg.Now().UTC()
	b := &vmBoard{At: now, VMs: []vmRow{}, Ended: []vmRow{}, Alarms: []Alarm{}}
	if err := p.readVMs(ctx, b, viewer); err != nil || !viewer.Operator() {
		return b, err
	}
	b.Source, b.Most = p.source(ctx), p.cfg.VMCaps.VMs
	day, month, err := p.cfg.VMs.Spent(ctx, now)
	if err != nil {
		return nil, err
	}
	b.Today, b.Month = newSum(day, p.cfg.VMCaps.MicroDay), newSum(month, p.cfg.VMCaps.MicroMonth)
	if p.cfg.Alarms != nil {
		b.Alarms = append(b.Alarms, p.cfg.Alarms()...)
	}
	times, err := p.cfg.VMs.Times(ctx)
	b.Took = tookOf(times)
	return b, err
}

// readVMs adds the VMs that a viewer may see.
func (p *pages) readVMs(ctx context.Context, b *vmBoard, viewer login.Viewer) error {
	rows, err := p.cfg.VMs.List(ctx)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r vm.Row) bool {
		return !viewer.Operator() && (r.Standby || r.Task.IsZero() || !viewer.MayRead(r.Task.Repo))
	})
	slices.SortFunc(rows, func(a, b vm.Row) int {
		return cmp.Or(a.Intended.Compare(b.Intended), cmp.Compare(a.Name, b.Name))
	})
	tasks := map[state.TaskKey]*state.Task{}
	for i := range rows {
		v := newVMRow(&rows[i], b.At)
		if v.Detail != "" && !viewer.Operator() {
			v.Detail = detailsForOperators
		}
		if err := p.nameTask(ctx, &v, rows[i].Task, tasks); err != nil {
			return err
		}
		if rows[i].Phase == vm.Gone {
			b.Ended = append(b.Ended, v)
		} else {
			b.VMs = append(b.VMs, v)
		}
	}
	slices.SortStableFunc(b.Ended, func(a, b vmRow) int { return b.Since.Compare(a.Since) })
	b.Ended = b.Ended[:min(len(b.Ended), maxVMs)]
	return nil
}

// nameTask replaces a task's key by its name and page, if the store has the task.
func (p *pages) nameTask(ctx context.Context, v *vmRow, key state.TaskKey, seen map[state.TaskKey]*state.Task) error {
	if key.IsZero() {
		return nil
	}
	t, ok := seen[key]
	if !ok {
		var err error
		if t, err = p.cfg.Store.Task(ctx, key); err != nil {
			return err
		}
		seen[key] = t
	}
	if t != nil {
		v.For, v.Page = fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue), taskPath(t)
	}
	return nil
}

// tookOf returns the measured durations and omits operations that were never measured.
func tookOf(times vm.Times) (list []vmTook) {
	for _, t := range []struct {
		what  string
		times []time.Duration
	}{{"from the order to the first login", times.Boot}, {"the same, from a suspended disk", times.Restore}, {"creating an image of a disk", times.Image}} {
		if len(t.times) == 0 {
			continue
		}
		half, most := vm.Percentile(t.times, 50), vm.Percentile(t.times, 95)
		list = append(list, vmTook{What: t.what, Times: len(t.times), P50: half.Seconds(), P95: most.Seconds(), half: half, most: most})
	}
	return list
}

// vms serves /vms.
func (p *pages) vms(w http.ResponseWriter, r *http.Request) {
	b, err := p.vmBoard(r.Context(), login.ViewerOf(r))
	if err != nil {
		p.fail(w, r, fmt.Errorf("read the VMs: %w", err))
		return
	}
	p.show(w, r, http.StatusOK, "vms", page{Title: "VMs", Data: b})
}

// vmsJSON serves /vms.json.
func (p *pages) vmsJSON(w http.ResponseWriter, r *http.Request) {
	b, err := p.vmBoard(r.Context(), login.ViewerOf(r))
	if err != nil {
		p.fail(w, r, fmt.Errorf("read the VMs: %w", err))
		return
	}
	p.json(w, r, b)
}
