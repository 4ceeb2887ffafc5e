package simgithub

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Job is a check as a CI reports it: a job of GitHub Actions, unless Foreign is set.
type Job struct {
	Workflow   string // file; default ci.yml
	Name       string
	Conclusion string // empty while it runs
	Summary    string

	Step        string // the step that decides; default "Run make test"
	Log         string // what this step printed
	Annotations []Annotation
	Rerun       string // conclusion of a re-run; empty: it runs until its end is reported

	Foreign bool // of another App than the simulator's and GitHub Actions, which has no jobs
}

// Annotation is a message of a check about a line.
type Annotation struct {
	Path    string
	Line    int
	Level   string // notice, warning or failure
	Message string
}

// Job reports a check of a commit. A later report of the same name and workflow replaces the earlier one, or ends its re-run.
func (s *Sim) Job(repo, sha string, j Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(repo)]
	if !ok {
		return errNotFound()
	}
	if j.Workflow == "" && !j.Foreign {
		j.Workflow = "ci.yml"
	}
	_, err := s.session(s.users[r.Owner]).checks().report(r, sha, j)
	return err
}

// CheckRun is Job for one without details.
func (s *Sim) CheckRun(repo, sha, name, conclusion, summary string) error {
	return s.Job(repo, sha, Job{Name: name, Conclusion: conclusion, Summary: summary})
}

// Status reports a commit status: error, failure, pending or success.
func (s *Sim) Status(repo, sha, context, state, description string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.repos[repoKey(repo)]
	if !ok {
		return errNotFound()
	}
	_, err := s.session(s.users[r.Owner]).checks().addStatus(r, Status{SHA: sha, Context: context, State: state, Description: description})
	return err
}

// report adds a run of a job, or ends the one that is being repeated.
func (ch checks) report(r *Repo, sha string, j Job) (*CheckRun, error) {
	status := "in_progress"
	req := checkRequest{Name: &j.Name, HeadSHA: sha, Status: &status, Output: &checkOutput{Title: j.Name, Summary: j.Summary}, job: &j}
	if j.Conclusion != "" {
		req.Conclusion = &j.Conclusion
	}
	for _, k := range r.newestRuns(sha) {
		if k.attempt > 1 && k.Status != "completed" && k.Name == j.Name && k.job.Workflow == j.Workflow && j.Conclusion != "" {
			return k, ch.end(r, k, req)
		}
	}
	return ch.addRun(r, req)
}

// end ends a run as reported.
func (ch checks) end(r *Repo, k *CheckRun, req checkRequest) error {
	if err := req.apply(k, ch.x.s.now()); err != nil {
		return err
	}
	k.job = req.job
	ch.x.webhooks().checkRun("completed", r, k)
	ch.judgeSuite(r, ch.suite(r, k))
	ch.x.refs().mergeDue(r)
	return nil
}

func actionRoutes() []route {
	return []route{
		{"GET", "/repos/{owner}/{repo}/actions/jobs/{id}", getJob},
		{"GET", "/repos/{owner}/{repo}/actions/jobs/{id}/logs", getJobLog},
		{"POST", "/repos/{owner}/{repo}/actions/jobs/{id}/rerun", rerunJob},
	}
}

// theJob returns the job in the path, whose id is that of its check run.
func (c *call) theJob(level string, role Role) (*Repo, *CheckRun, error) {
	r, err := c.repository()
	if err != nil {
		return nil, nil, err
	}
	if err := c.need(r, "actions", level, role); err != nil {
		return nil, nil, err
	}
	k, err := c.theCheckRun(r)
	if err != nil || k.job == nil || k.job.Foreign {
		return nil, nil, errNotFound()
	}
	return r, k, nil
}

func getJob(c *call) (any, error) {
	r, k, err := c.theJob("read", RoleRead)
	if err != nil {
		return nil, err
	}
	return c.s.json.job(r, k, c.checks().suite(r, k)), nil
}

// logTime is how long the address of a log is valid.
const logTime = time.Minute

// getJobLog redirects to the log, at an address that needs no token.
func getJobLog(c *call) (any, error) {
	_, k, err := c.theJob("read", RoleRead)
	if err != nil {
		return nil, err
	}
	if k.Status != "completed" {
		return nil, errNotFound()
	}
	id, until := itoa(k.ID), itoa(c.s.cfg.Now().Add(logTime).Unix())
	c.header.Set("Location", c.s.json.html("/_actions/logs/%s?until=%s&sig=%s", id, until, c.s.signature("log "+id, until)))
	c.status = http.StatusFound
	return nil, nil
}

// serveJobLog serves logs at their addresses. A request with a token is an error: it was sent to the wrong host.
func (s *Sim) serveJobLog(w http.ResponseWriter, r *http.Request) {
	f := s.admit(r, "log", r.URL.Path)
	if f.before(w, r) {
		return
	}
	if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
		http.Error(w, "a download with a token", http.StatusBadRequest)
		return
	}
	text, ok := s.jobLog(r.PathValue("id"), r.URL.Query().Get("until"), r.URL.Query().Get("sig"))
	if !ok {
		http.Error(w, "Signature not valid in the specified time frame", http.StatusForbidden)
		return
	}
	if !f.after(w, r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text))
	}
}

// jobLog returns the log at a signed address.
func (s *Sim) jobLog(id, until, signature string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, err := strconv.ParseInt(until, 10, 64)
	if err != nil || signature != s.signature("log "+id, until) || !s.cfg.Now().Before(time.Unix(end, 0)) {
		return "", false
	}
	for _, r := range s.repos {
		for _, k := range r.CheckRuns {
			if itoa(k.ID) == id {
				return k.log(), true
			}
		}
	}
	return "", false
}

// maxRerunAge is the age of a workflow run from which on GitHub does not repeat its jobs.
const maxRerunAge = 30 * 24 * time.Hour

// rerunJob repeats a job in a new attempt of its workflow run.
func rerunJob(c *call) (any, error) {
	r, k, err := c.theJob("write", RoleWrite)
	if err != nil {
		return nil, err
	}
	suite := c.checks().suite(r, k)
	switch {
	case suite.Status != "completed":
		return nil, errForbidden("The workflow run containing this job is already running")
	case c.s.now().Sub(suite.CreatedAt) > maxRerunAge:
		return nil, errForbidden("Unable to retry this workflow run because it was created over a month ago")
	}
	suite.attempt++
	again := *k.job
	again.Conclusion = ""
	if _, err := c.checks().report(r, k.HeadSHA, again); err != nil {
		return nil, err
	}
	if again.Rerun != "" {
		again.Conclusion = again.Rerun
		if _, err := c.checks().report(r, k.HeadSHA, again); err != nil {
			return nil, err
		}
	}
	return c.created(obj{})
}

// jobStep is one step of a job, with its times before the job's end.
type jobStep struct {
	name, conclusion string
	from, to         time.Duration
}

// steps returns the steps of a job, one of which decides.
func (k *CheckRun) steps() []jobStep {
	decides := k.job.Step
	if decides == "" {
		decides = "Run make test"
	}
	return []jobStep{
		{"Set up job", "success", 4 * time.Second, 3 * time.Second}, {"Run actions/checkout@v4", "success", 3 * time.Second, 2 * time.Second},
		{decides, k.Conclusion, 2 * time.Second, time.Second}, {"Post Run actions/checkout@v4", "success", 0, 0}, {"Complete job", "success", 0, 0},
	}
}

// log is the log of a completed job.
func (k *CheckRun) log() string {
	var b strings.Builder
	line := func(at time.Duration, text string) {
		fmt.Fprintf(&b, "%s %s\n", k.CompletedAt.Add(-at+100*time.Millisecond).UTC().Format("2006-01-02T15:04:05.0000000Z"), text)
	}
	steps := k.steps()
	b.WriteString("\ufeff")
	line(steps[0].from, "Current runner version: '2.330.0'")
	line(steps[1].from, "##[group]Run actions/checkout@v4")
	line(steps[1].from, "##[endgroup]")
	line(steps[2].from, "##[group]Run "+strings.TrimPrefix(steps[2].name, "Run "))
	line(steps[2].from, "##[endgroup]")
	for l := range strings.Lines(k.job.Log) {
		line(steps[2].from, strings.TrimSuffix(l, "\n"))
	}
	if k.Conclusion == "failure" {
		line(steps[2].from, "##[error]Process completed with exit code 1.")
	}
	line(0, "Post job cleanup.")
	return b.String()
}

// annotations returns the annotations of a run. GitHub Actions adds one to each failed job, about a line of its log.
func (k *CheckRun) annotations() []Annotation {
	if k.job == nil {
		return nil
	}
	list := slices.Clone(k.job.Annotations)
	if k.Conclusion == "failure" && !k.job.Foreign {
		list = append(list, Annotation{Path: ".github", Line: 6 + strings.Count(k.job.Log, "\n"), Level: "failure", Message: "Process completed with exit code 1."})
	}
	return list
}

func listAnnotations(c *call) (any, error) {
	if _, err := getCheckRun(c); err != nil {
		return nil, err
	}
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	k, err := c.theCheckRun(r)
	if err != nil {
		return nil, err
	}
	return each(page(c, k.annotations()), func(a Annotation) obj {
		return obj{
			"path": a.Path, "blob_href": c.s.json.html("/%s/blob/%s/%s", r.FullName(), k.HeadSHA, a.Path), "start_line": a.Line, "end_line": a.Line,
			"start_column": nil, "end_column": nil, "annotation_level": a.Level, "title": "", "message": a.Message, "raw_details": "",
		}
	}), nil
}
