package ci_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/forge/green"
)

type m = map[string]any

// fakeCI is a GitHub with one check run, 7, and another host that has its log.
type fakeCI struct {
	app         string // slug of the App; default github-actions
	status      string // default completed
	output      m
	annotations []m
	steps       []m
	refused     map[string]int // status by the end of a path; 403 is a missing permission
	log         http.HandlerFunc
	newer       []int // IDs of further runs of the check
	rerun       m     // answer to a re-run, with its code; nil: 201

	mu     sync.Mutex
	posted int      // re-runs
	asked  []string // requests of the host of logs: Range and Authorization
}

// plainLog serves a log, and ignores Range as GitHub may.
func plainLog(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text))
	}
}

// start starts both hosts and returns a Forge for them.
func (f *fakeCI) start(t *testing.T, change ...func(*forge.Config)) *forge.Forge {
	t.Helper()
	logs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, strings.TrimSpace(r.Header.Get("Range")+" "+r.Header.Get("Authorization")+r.Header.Get("Cookie")+r.Header.Get("Referer")))
		f.mu.Unlock()
		f.log(w, r)
	}))
	t.Cleanup(logs.Close)
	g := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/api/v3/repos/octo/app")
		for end, status := range f.refused {
			if strings.HasSuffix(path, end) {
				forgetest.Answer(w, status, m{"message": map[int]string{403: "Resource not accessible by integration"}[status]})
				return
			}
		}
		switch path {
		case "/check-runs/7":
			forgetest.Answer(w, http.StatusOK, f.run(7))
		case "/check-runs/7/annotations":
			page, _ := strconv.Atoi(r.URL.Query().Get("page"))
			from, to := min((page-1)*100, len(f.annotations)), min(page*100, len(f.annotations))
			if to < len(f.annotations) {
				w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, page+1))
			}
			forgetest.Answer(w, http.StatusOK, f.annotations[from:to])
		case "/actions/jobs/7":
			forgetest.Answer(w, http.StatusOK, m{"id": 7, "run_id": 70, "run_attempt": 1, "steps": f.steps})
		case "/actions/jobs/7/logs":
			http.Redirect(w, r, logs.URL+"/log?sig=secret", http.StatusFound)
		case "/check-suites/70/check-runs":
			runs := []m{f.run(7), {"id": 9, "name": "other"}}
			for _, id := range f.newer {
				runs = append(runs, f.run(id))
			}
			forgetest.Answer(w, http.StatusOK, m{"total_count": len(runs), "check_runs": runs})
		case "/actions/jobs/7/rerun":
			f.mu.Lock()
			f.posted++
			f.mu.Unlock()
			status := http.StatusCreated
			if code, ok := f.rerun["code"].(int); ok {
				status = code
			}
			forgetest.Answer(w, status, f.rerun)
		default:
			t.Errorf("%s %s was requested", r.Method, r.URL)
		}
	})
	return forgetest.New(t, g.URL, change...)
}

func (f *fakeCI) run(id int) m {
	app, status, output := f.app, f.status, m{"annotations_count": len(f.annotations)}
	if app == "" {
		app = "github-actions"
	}
	if status == "" {
		status = "completed"
	}
	for k, v := range f.output {
		output[k] = v
	}
	return m{"id": id, "name": "build", "status": status, "app": m{"slug": app}, "output": output, "check_suite": m{"id": 70}}
}

func failed() green.Check { return green.Check{ID: 7, Name: "build", URL: "https://github.example/7"} }

// read reads the check and returns its cause without what the test put in.
func (f *fakeCI) read(t *testing.T, change ...func(*forge.Config)) (green.Cause, error) {
	t.Helper()
	if f.log == nil {
		f.log = plainLog("")
	}
	got, err := f.start(t, change...).FailedCheck(t.Context(), forgetest.Repo(), failed(), true)
	if err == nil && (got.Check != failed() || got.URL != failed().URL) {
		t.Errorf("got another check: %+v", got)
	}
	got.Check, got.URL = green.Check{}, ""
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range f.asked {
		if q != "" && !strings.HasPrefix(q, "bytes=") || strings.Contains(q, " ") {
			t.Errorf("the host of the log got credentials or an address: %q", q)
		}
	}
	return got, err
}

func step(name, conclusion string, from, to string) m {
	return m{"name": name, "status": "completed", "conclusion": conclusion, "number": 1, "started_at": "2026-01-02T03:04:" + from + "Z",
		"completed_at": "2026-01-02T03:04:" + to + "Z"}
}

// stamped puts a time before each line, given as seconds and the text.
func stamped(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		second, text, _ := strings.Cut(l, " ")
		fmt.Fprintf(&b, "2026-01-02T03:04:%sZ %s\n", second, text)
	}
	return b.String()
}

func TestFailedCheck(t *testing.T) {
	t.Parallel()
	steps := []m{step("Set up job", "success", "01", "02"), step("Run make", "failure", "02", "04"), step("Post", "success", "04", "05")}
	log := "\ufeff" + stamped("01.1000000 Current runner version", "02.1000000 ##[group]Run actions/setup@v1", "02.2000000 ready",
		"02.3000000 ##[group]Run make", "02.4000000 ##[endgroup]", "03.0000000 FAIL: TestX", "04.1000000 ##[error]Process completed with exit code 2.",
		"04.2000000 Post job cleanup.", "05.0000000 bye")
	const whole = "FAIL: TestX\n##[error]Process completed with exit code 2."
	const ofStep = "##[group]Run actions/setup@v1\nready\n##[group]Run make\n##[endgroup]\n" + whole
	gone := green.Cause{Step: "Run make", Note: "GitHub does not have the log any more."}
	tests := map[string]struct {
		*fakeCI
		want green.Cause
	}{
		"the lines of the failing step": {&fakeCI{steps: steps, log: plainLog(log)}, green.Cause{Step: "Run make", Log: ofStep}},
		"the first of two failing steps": {&fakeCI{steps: append(steps[:2:2], step("Report", "failure", "06", "07")), log: plainLog(log + stamped("06.5000000 ##[error]no report"))},
			green.Cause{Step: "Run make", Log: ofStep}},
		"a step that was stopped": {&fakeCI{steps: []m{step("Set up", "success", "01", "02"), step("Run make", "cancelled", "03", "03")}, log: plainLog(log)},
			green.Cause{Step: "Run make", Log: "FAIL: TestX"}},
		"a step whose end is unknown": {&fakeCI{steps: []m{{"name": "Run make", "conclusion": "failure", "started_at": "2026-01-02T03:04:04Z", "completed_at": nil}}, log: plainLog(log)},
			green.Cause{Step: "Run make", Log: "##[error]Process completed with exit code 2.\nPost job cleanup.\nbye"}},
		"a step of which the log has nothing": {&fakeCI{steps: []m{step("Run make", "failure", "30", "31")}, log: plainLog(log[:54])},
			green.Cause{Step: "Run make", Log: "Current runner version"}},
		"a step that ended before the log": {&fakeCI{steps: []m{step("Run make", "failure", "00", "00")}, log: plainLog(stamped("01.5 a", "03.5 b"))},
			green.Cause{Step: "Run make", Log: "a\nb"}},
		"an action that goes on after an error": {&fakeCI{steps: []m{step("Act", "failure", "02", "05")}, log: plainLog(stamped("02.1 ##[group]Run ./act",
			"02.5 ##[error]odd", "03.0 ##[group]Run two", "05.5 ##[error]exit", "05.6 ##[group]Run clean"))},
			green.Cause{Step: "Act", Log: "##[group]Run ./act\n##[error]odd\n##[group]Run two\n##[error]exit"}},
		"no step failed":             {&fakeCI{steps: steps[:1], log: plainLog(stamped("01.5 a", "03.5 b"))}, green.Cause{Log: "a\nb"}},
		"no steps and no timestamps": {&fakeCI{log: plainLog("a\n\n  b c\n2026 is a year\n")}, green.Cause{Log: "a\n\n  b c\n2026 is a year"}},
		"an empty log":               {&fakeCI{steps: steps}, green.Cause{Step: "Run make"}},
		"escapes and bytes": {&fakeCI{log: plainLog("\x1b[31;1mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07\x1b(B\r\n10%\r50%\r100%\na\xff\xc3b\x00\x08c\x1b\nw\u009b31m\n\ttab  \n")},
			green.Cause{Log: "red link\n100%\na\ufffdbc\nw31m\n\ttab"}},
		"a long line":         {&fakeCI{log: plainLog("a\n" + strings.Repeat("é", 100_000) + "\nb")}, green.Cause{Log: "a\n" + strings.Repeat("é", 510) + "…\nb"}},
		"the log expired":     {&fakeCI{steps: steps, refused: map[string]int{"/logs": 410}}, gone},
		"the log was deleted": {&fakeCI{steps: steps, refused: map[string]int{"/logs": 404}}, gone},
		"its host lost it":    {&fakeCI{steps: steps, log: http.NotFound}, gone},
		"its host refuses": {&fakeCI{log: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<Error>", 403) }},
			green.Cause{Note: "The server that has the log answered 403 Forbidden."}},
		"a page instead of a log": {&fakeCI{log: plainLog("\n<!DOCTYPE html><html><body>Sign in</body></html>")}, green.Cause{Note: "GitHub sent something else than a log."}},
		"an archive instead":      {&fakeCI{log: plainLog("PK\x03\x04....")}, green.Cause{Note: "GitHub sent something else than a log."}},
		"no address":              {&fakeCI{refused: map[string]int{"/logs": 200}}, green.Cause{Note: "GitHub did not tell where the log is."}},
		"the log is not granted": {&fakeCI{steps: steps, refused: map[string]int{"/logs": 403}},
			green.Cause{Step: "Run make", Note: "errand may not read the log: the App needs the permission actions: read."}},
		"Actions are not granted": {&fakeCI{refused: map[string]int{"/jobs/7": 403}, annotations: []m{{"annotation_level": "failure", "message": "no"}}},
			green.Cause{Annotations: []green.Annotation{{Level: "failure", Message: "no"}}, Note: "errand may not read the job and its log: the App needs the permission actions: read."}},
		"nothing but the job": {&fakeCI{steps: steps, refused: map[string]int{"/annotations": 404, "/logs": 404}, annotations: []m{{}}},
			green.Cause{Step: "Run make", Note: "GitHub does not have the annotations any more. GitHub does not have the log any more."}},
		"checks are not granted":  {&fakeCI{refused: map[string]int{"/check-runs/7": 403}}, green.Cause{Note: "errand may not read the check: the App needs the permission checks: read."}},
		"the check was deleted":   {&fakeCI{refused: map[string]int{"/check-runs/7": 404}}, green.Cause{Note: "GitHub does not have the check any more."}},
		"another App's output":    {&fakeCI{app: "quality", output: m{"title": "\x1b[1m3 issues", "summary": "## Bad\r\n- \xffa\n"}}, green.Cause{Title: "3 issues", Summary: "## Bad\n- \ufffda"}},
		"another App's long text": {&fakeCI{app: "quality", output: m{"summary": strings.Repeat("x", 70_000)}}, green.Cause{Summary: strings.Repeat("x", green.MaxSummary-3) + "…"}},
		"another App without any": {&fakeCI{app: "quality"}, green.Cause{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, forgetest.Must(tt.read(t))(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Statuses and checks without an ID have nothing that could be read.
func TestFailedCheckWithoutRequests(t *testing.T) {
	t.Parallel()
	f := (&fakeCI{refused: map[string]int{"": 500}}).start(t)
	status := green.Check{Name: "ci", Status: true, Summary: "2 tests \x1b[31mfailed", URL: "https://ci.example/1"}
	got := forgetest.Must(f.FailedCheck(t.Context(), forgetest.Repo(), status, true))(t)
	if diff := cmp.Diff(green.Cause{Check: status, Title: "2 tests failed", URL: status.URL}, got); diff != "" {
		t.Error(diff)
	}
	got = forgetest.Must(f.FailedCheck(t.Context(), forgetest.Repo(), green.Check{Name: "build"}, true))(t)
	if got.Note != "GitHub does not name the check's ID, so its output cannot be read." {
		t.Errorf("got %+v", got)
	}
}

// The worst annotations are kept, wherever they are in the list.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	var all []m
	for i := range 250 {
		level := []string{"notice", "warning", "strange"}[i%3]
		all = append(all, m{"path": "a.go", "start_line": i, "annotation_level": level, "message": fmt.Sprint(i)})
	}
	all = append(all, m{"path": ".github", "start_line": 7, "annotation_level": "failure", "message": "Process completed with exit code 1.", "title": nil},
		m{"path": "b.go", "start_line": 3, "annotation_level": "failure", "message": strings.Repeat("x", 5000), "title": "A\x1b[0m title"})
	got := forgetest.Must((&fakeCI{annotations: all}).read(t))(t).Annotations
	if len(got) != green.MaxAnnotations {
		t.Fatalf("got %d annotations", len(got))
	}
	want := []green.Annotation{
		{Level: "failure", Message: "Process completed with exit code 1."},
		{Path: "b.go", Line: 3, Level: "failure", Message: "A title: " + strings.Repeat("x", green.MaxMessage-len("A title: …")) + "…"},
		{Path: "a.go", Line: 1, Level: "warning", Message: "1"},
	}
	if diff := cmp.Diff(want, got[:3]); diff != "" {
		t.Error(diff)
	}
}

// Failures of GitHub are errors: the check is read again later. None of them has the address of the log, with which everybody can read it.
func TestFailedCheckCannotBeRead(t *testing.T) {
	t.Parallel()
	tests := map[string]*fakeCI{
		"the check": {refused: map[string]int{"/check-runs/7": 502}}, "the annotations": {refused: map[string]int{"/annotations": 500}, annotations: []m{{}}},
		"the job": {refused: map[string]int{"/jobs/7": 503}}, "the address of the log": {refused: map[string]int{"/logs": 502}},
		"the log": {log: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }},
		"a log that ends too early": {log: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("begin"))
		}},
		"a log that never comes":         {log: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		"a log that is always elsewhere": {log: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/log?sig=secret", http.StatusFound) }},
		"a wrong address": {log: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://[?secret")
			w.WriteHeader(http.StatusFound)
		}},
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.steps = []m{step("Run make", "failure", "02", "04")}
			got, err := f.read(t, func(c *forge.Config) {
				if c.Timeout = time.Minute; strings.Contains(name, "never") {
					c.Timeout = 3 * time.Second
				}
			})
			class, _ := forge.Classify(err)
			reason, _ := forge.Explain(err)
			if err == nil || class != forge.ClassTemporary || strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "read a failed check 7 of octo/app: ") {
				t.Errorf("got %s: %v", class, err)
			}
			// Without its log the cause is complete.
			if noLog := strings.Contains(name, "log") || name == "a wrong address"; noLog != errors.Is(err, forge.ErrLogUnavailable) || noLog != (got.Step != "") || noLog != strings.HasPrefix(reason, "The log could not be read, because the server") {
				t.Errorf("got %+v with %v", got, err)
			}
		})
	}
}

// A log that is not wanted is not requested.
func TestFailedCheckWithoutLog(t *testing.T) {
	t.Parallel()
	f := &fakeCI{steps: []m{step("Run make", "failure", "02", "04")}, log: plainLog("secret")}
	got := forgetest.Must(f.start(t).FailedCheck(t.Context(), forgetest.Repo(), failed(), false))(t)
	if got.Step != "Run make" || got.Log != "" || len(f.asked) > 0 {
		t.Errorf("got %+v after %v", got, f.asked)
	}
}
