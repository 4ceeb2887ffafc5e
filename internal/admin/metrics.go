package admin

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics counts events of this process in a separate registry. Its methods may be called concurrently. Metrics about
// the store's content are collected on each scrape; see collector.
type Metrics struct {
	registry   *prometheus.Registry
	deliveries *prometheus.CounterVec
	calls      *prometheus.HistogramVec
	remaining  *prometheus.GaugeVec
	polls      prometheus.Counter
	pollCost   prometheus.Counter
	jobs       *prometheus.HistogramVec
}

// NewMetrics returns the metrics of one server.
func NewMetrics(version string) *Metrics {
	r := prometheus.NewRegistry()
	m := &Metrics{
		registry: r,
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "errand_deliveries_total", Help: "Webhooks received, by event and whether they were new.",
		}, []string{"event", "seen"}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "errand_github_call_duration_seconds", Help: "Calls to GitHub, by purpose, class of outcome and status (0: no response).",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"call", "class", "status"}),
		remaining: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "errand_github_remaining", Help: "Remaining hourly GitHub limit in the last response, by API and installation.",
		}, []string{"api", "installation"}),
		polls: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "errand_polls_total", Help: "Reads of the reactions on pending plans.",
		}),
		pollCost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "errand_poll_cost_points_total", Help: "GraphQL rate limit points spent on these reads.",
		}),
		jobs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "errand_step_duration_seconds", Help: "Attempts at jobs, by kind and outcome.",
			Buckets: []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900},
		}, []string{"kind", "outcome"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "errand_build_info", Help: "Always 1; the label is the version.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	r.MustRegister(m.deliveries, m.calls, m.remaining, m.polls, m.pollCost, m.jobs, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Delivery counts a webhook. event is GitHub's event name; isNew is false for a repeated delivery.
func (m *Metrics) Delivery(event string, isNew bool) {
	seen := "before"
	if isNew {
		seen = "new"
	}
	m.deliveries.WithLabelValues(eventLabel(event), seen).Inc()
}

// eventLabel limits the label to known events, because any sender can choose the name.
func eventLabel(event string) string {
	switch event {
	case "check_run", "check_suite", "create", "delete", "github_app_authorization", "installation", "installation_repositories",
		"installation_target", "issue_comment", "issue_dependencies", "issues", "label", "member", "meta", "ping", "pull_request",
		"pull_request_review", "pull_request_review_comment", "pull_request_review_thread", "push", "repository", "status", "sub_issues",
		"workflow_run":
		return event
	}
	return "other"
}

// Call counts a call to GitHub. name is its purpose, class its outcome; status is 0 if there was no response.
func (m *Metrics) Call(name, class string, status int, d time.Duration) {
	if class == "" {
		class = "ok"
	}
	m.calls.WithLabelValues(name, class, strconv.Itoa(status)).Observe(d.Seconds())
}

// Remaining records the rest of GitHub's hourly limit for an API (rest, graphql, …).
func (m *Metrics) Remaining(api string, installation int64, left int) {
	m.remaining.WithLabelValues(api, strconv.FormatInt(installation, 10)).Set(float64(left))
}

// Polled counts a read of reactions and its cost in points.
func (m *Metrics) Polled(cost int) {
	m.polls.Inc()
	m.pollCost.Add(float64(max(cost, 0)))
}

// Job counts an attempt at a job and its duration.
func (m *Metrics) Job(kind string, d time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	m.jobs.WithLabelValues(kind, outcome).Observe(d.Seconds())
}

// Backup registers the time of the newest scheduled backup, and returns the function that sets it.
func (m *Metrics) Backup() func(at time.Time) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "errand_backup_newest_timestamp_seconds", Help: "When the newest scheduled backup was made; 0 if there is none.",
	})
	m.registry.MustRegister(g)
	return func(at time.Time) { g.Set(float64(at.Unix())) }
}

// handler serves these metrics together with those of c.
func (m *Metrics) handler(c prometheus.Collector) http.Handler {
	stored := prometheus.NewRegistry()
	stored.MustRegister(c)
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, stored}, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: 2 * boardTime,
	})
}
