package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// countedPoison limits the count of failed deliveries.
const countedPoison = 1000

// desc returns the description of a metric read from the store.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("errand_"+name, help, labels, nil)
}

// collector reads the store on each scrape. It counts tasks in their current state, and a restarted task drops its
// earlier runs, so these metrics are gauges.
type collector struct {
	store  Store
	spent  func(ctx context.Context) (day, month state.Money, err error) // may be nil
	vms    VMs                                                           // may be nil
	caps   vm.Caps
	alarms func() []Alarm // may be nil
	// missing may be nil.
	missing func() []Missing
	// providers and pauses may be nil.
	providers  reader
	pauses     *Pauses
	endedTasks *endedTasks
	openTasks  *openTasks
	now        func() time.Time
}

var _ prometheus.Collector = (*collector)(nil)

// Describe sends nothing, which makes the collector unchecked: its labels depend on the store.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the store. A failed read is an error of the scrape; all other metrics are still served.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), boardTime)
	defer cancel()
	c.access(out)
	err := errors.Join(
		c.phases(ctx, out), c.poison(ctx, out), c.money(ctx, out),
		c.vmFacts(ctx, out), c.trouble(ctx, out), c.paused(ctx, out), c.tasks(ctx, out))
	if err != nil {
		out <- prometheus.NewInvalidMetric(desc("store", "Contents of the store."), err)
	}
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (c *collector) phases(ctx context.Context, out chan<- prometheus.Metric) error {
	counts, err := c.store.Counts(ctx)
	if err != nil {
		return err
	}
	d := desc("tasks", "Tasks by phase.", "phase")
	for _, phase := range state.Phases() {
		gauge(out, d, float64(counts[phase]), string(phase))
	}
	return nil
}

func (c *collector) poison(ctx context.Context, out chan<- prometheus.Metric) error {
	list, err := c.store.PoisonDeliveries(ctx, countedPoison)
	if err != nil {
		return err
	}
	gauge(out, desc("deliveries_poison", "Webhooks that permanently failed to apply, counted up to 1000."), float64(len(list)))
	return nil
}

// paused emits whether everything is paused, and the number of paused repositories.
func (c *collector) paused(ctx context.Context, out chan<- prometheus.Metric) error {
	if c.pauses == nil {
		return nil
	}
	list, err := c.pauses.List(ctx)
	if err != nil {
		return err
	}
	d := desc("paused", "Pauses by operators: 1 for the scope all if everything is paused, and the number of paused repositories.", "scope")
	all := slices.ContainsFunc(list, func(p state.Pause) bool { return p.Repo == 0 })
	if all {
		gauge(out, d, 1, "all")
		gauge(out, d, float64(len(list)-1), "repository")
		return nil
	}
	gauge(out, d, 0, "all")
	gauge(out, d, float64(len(list)), "repository")
	return nil
}

func (c *collector) money(ctx context.Context, out chan<- prometheus.Metric) error {
	if c.spent == nil {
		return nil
	}
	day, month, err := c.spent(ctx)
	if err != nil {
		return err
	}
	spent, caps := desc("spent_dollars", "Cost of all tasks in the current day and month (UTC).", "period"), desc("spent_cap_dollars", "Caps of these; 0 means none.", "period")
	for period, m := range map[string]state.Money{"day": day, "month": month} {
		gauge(out, spent, float64(m.MicroUSD)/1e6, period)
		gauge(out, caps, float64(m.CapMicroUSD)/1e6, period)
	}
	return nil
}

// tasks counts the resources that tasks used, and the jobs of open and recently ended tasks.
func (c *collector) tasks(ctx context.Context, out chan<- prometheus.Metric) error {
	open, err := c.openTasks.Open(ctx)
	if err != nil {
		return err
	}
	ended, err := c.endedTasks.ended(ctx)
	if err != nil {
		return err
	}
	used := newUsage()
	used.plus(ended.used)
	queue := newBacklog(c.now())
	for _, d := range open {
		used.add(d.used)
		if err := queue.read(ctx, c.store, d.key); err != nil {
			return err
		}
	}
	for _, e := range ended.newest {
		key, err := state.ParseTaskKey(e.Task)
		if err == nil {
			err = queue.read(ctx, c.store, key)
		}
		if err != nil {
			return err
		}
	}
	used.emit(out)
	queue.emit(out)
	return nil
}

// emit sends the metrics of a usage.
func (u *usage) emit(out chan<- prometheus.Metric) {
	d := desc("runs", "Runs of all tasks by kind and status: the state of an active run, the outcome of an ended one, and for checks whether they passed.", "kind", "status")
	for l, n := range u.runs {
		gauge(out, d, float64(n), l.kind, l.status)
	}
	d = desc("vms", "VMs of all tasks by kind and reason of their end, empty for live ones.", "kind", "ended")
	for l, n := range u.vms {
		gauge(out, d, float64(n), l.kind, l.why)
	}
	d = desc("runs_miscounted", "Runs of all tasks whose agent-reported tokens differ from the gateway's, by adapter.", "adapter")
	for adapter, n := range u.doubts {
		gauge(out, d, float64(n), adapter)
	}
	d = desc("tokens", "Tokens used by all tasks.", "direction")
	gauge(out, d, float64(u.input), "input")
	gauge(out, d, float64(u.output), "output")
	gauge(out, desc("cost_dollars", "Cost of all tasks in US dollars, without subscriptions."), float64(u.micro)/1e6)
	gauge(out, desc("subscription_tasks", "Tasks that used models on a subscription, which has no cost per call."), float64(u.free))
	gauge(out, desc("agent_seconds", "Agent activity of all tasks."), u.active.Seconds())
}

// backlog counts jobs.
type backlog struct {
	now    time.Time
	counts map[jobLabel]int
	oldest map[state.Lane]time.Duration // how long the oldest due job has been due
}

type jobLabel struct {
	lane  state.Lane
	kind  state.JobKind
	state state.JobState
}

func newBacklog(now time.Time) *backlog {
	return &backlog{now: now, counts: map[jobLabel]int{}, oldest: map[state.Lane]time.Duration{}}
}

// read counts the jobs of a task.
func (b *backlog) read(ctx context.Context, s Store, key state.TaskKey) error {
	jobs, err := s.Jobs(ctx, key)
	if err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i]
		b.counts[jobLabel{j.Lane, j.Kind, j.State}]++
		since := j.Created
		if j.NotBefore.After(since) {
			since = j.NotBefore
		}
		if late := b.now.Sub(since); j.State == state.JobQueued && late > b.oldest[j.Lane] {
			b.oldest[j.Lane] = late
		}
	}
	return nil
}

func (b *backlog) emit(out chan<- prometheus.Metric) {
	d := desc("jobs", "Jobs by lane, kind and state, including those not due yet.", "lane", "kind", "state")
	for l, n := range b.counts {
		gauge(out, d, float64(n), string(l.lane), string(l.kind), string(l.state))
	}
	d = desc("job_oldest_due_seconds", "How long the oldest queued job has been due, 0 if none is.", "lane")
	for _, lane := range state.Lanes() {
		gauge(out, d, b.oldest[lane].Seconds(), string(lane))
	}
}
