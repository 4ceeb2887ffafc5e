// Package ci reads why checks failed, and runs jobs of GitHub Actions again.
//
// A failed check is explained by its job's failing step and the end of its log, by its annotations, and by the output of the App that
// reported it. A part that cannot be read is named and is no error. Logs are downloaded from another host than GitHub's, which gets no
// token, and are never held in memory as a whole.
//
// docs/checks.md explains the limits to users. Start with [Checker.FailedCheck].
package ci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/forge/green"
)

// Checker reads and repeats single checks. It is safe for concurrent use.
type Checker struct{ client *client.Client }

// New returns a Checker for an App.
func New(c *client.Client) *Checker { return &Checker{client: c} }

// actionsSlug is the name of the App of GitHub Actions. Its ID is another one on each server.
const actionsSlug = "github-actions"

// FailedCheck returns why a check failed, with the end of its log if that is wanted. A part that the App may not read, or that GitHub does not
// have any more, is missing and named in the Note; this is no error. With the error ErrLogUnavailable the cause has everything else.
func (k *Checker) FailedCheck(ctx context.Context, r client.Repo, c green.Check, withLog bool) (green.Cause, error) {
	out := green.Cause{Check: c, URL: c.URL}
	if c.Status {
		out.Title = text(c.Summary, green.MaxMessage)
		return out, nil
	}
	op, err := k.client.Read(ctx, r.Installation, "read a failed check", fmt.Sprintf("%d of %s", c.ID, r.FullName()))
	if err != nil {
		return green.Cause{}, err
	}
	f := &causeReader{checker: k, op: op, r: r, out: out, withLog: withLog}
	err = f.read()
	if err != nil && !errors.Is(err, ErrLogUnavailable) {
		return green.Cause{}, op.Wrap(err)
	}
	return f.out, op.Wrap(err)
}

// causeReader reads one cause.
type causeReader struct {
	checker *Checker
	op      *client.Operation
	r       client.Repo
	out     green.Cause
	withLog bool
}

// note adds a sentence about what is missing.
func (f *causeReader) note(sentence string) {
	f.out.Note = strings.TrimSpace(f.out.Note + " " + sentence)
}

// isMissing reports whether an error only means that the App cannot read something, and notes it: GitHub does not have it, or the
// installation lacks a permission.
func (f *causeReader) isMissing(err error, thing, permission string) bool {
	status := client.StatusOf(err)
	switch {
	case client.NotGranted(err):
		f.note(fmt.Sprintf("errand may not read %s: the App needs the permission %s.", thing, permission))
	case status == http.StatusNotFound || status == http.StatusGone:
		f.note(fmt.Sprintf("GitHub does not have %s any more.", thing))
	default:
		return false
	}
	return true
}

func (f *causeReader) read() error {
	if f.out.Check.ID == 0 {
		f.note("GitHub does not name the check's ID, so its output cannot be read.")
		return nil
	}
	run, _, err := f.op.GitHub.Checks.GetCheckRun(f.op.Ctx, f.r.Owner, f.r.Name, f.out.Check.ID)
	switch {
	case f.isMissing(err, "the check", "checks: read"):
		return nil
	case err != nil:
		return err
	}
	if run.GetOutput().GetAnnotationsCount() > 0 {
		if err := f.readAnnotations(); err != nil {
			return err
		}
	}
	if run.GetApp().GetSlug() == actionsSlug {
		return f.readJob()
	}
	f.out.Title = text(run.GetOutput().GetTitle(), green.MaxMessage)
	f.out.Summary = text(run.GetOutput().GetSummary(), green.MaxSummary)
	return nil
}

// annotationPages limits the annotations that are read: jobs have at most 50, other Apps can have thousands.
const annotationPages = 5

// readAnnotations reads the annotations and keeps the worst ones, in their order.
func (f *causeReader) readAnnotations() error {
	var all []green.Annotation
	for page, reads := 1, 0; page != 0 && reads < annotationPages; reads++ {
		list, resp, err := f.op.GitHub.Checks.ListCheckRunAnnotations(f.op.Ctx, f.r.Owner, f.r.Name, f.out.Check.ID,
			&github.ListOptions{Page: page, PerPage: 100})
		if f.isMissing(err, "the annotations", "checks: read") {
			break
		}
		if err != nil {
			return err
		}
		for _, a := range list {
			all = append(all, annotation(a))
		}
		page = resp.NextPage
	}
	slices.SortStableFunc(all, func(a, b green.Annotation) int { return severity(a) - severity(b) })
	f.out.Annotations = all[:min(len(all), green.MaxAnnotations)]
	return nil
}

// severity is the place of an annotation's level, the worst first.
func severity(a green.Annotation) int {
	levels := []string{"failure", "warning", "notice"}
	if i := slices.Index(levels, a.Level); i >= 0 {
		return i
	}
	return len(levels)
}

// annotation returns an annotation. GitHub Actions puts those about no file into the folder of the workflows, at lines of the log.
func annotation(a *github.CheckRunAnnotation) green.Annotation {
	message := a.GetMessage()
	if title := a.GetTitle(); title != "" && !strings.Contains(message, title) {
		message = title + ": " + message
	}
	out := green.Annotation{
		Path: text(a.GetPath(), green.MaxMessage), Line: max(0, a.GetStartLine()), Level: text(a.GetAnnotationLevel(), 20),
		Message: text(message, green.MaxMessage),
	}
	if out.Path == ".github" {
		out.Path, out.Line = "", 0
	}
	return out
}

// readJob reads the failing step of a job and the end of its log.
func (f *causeReader) readJob() error {
	job, _, err := f.op.GitHub.Actions.GetWorkflowJobByID(f.op.Ctx, f.r.Owner, f.r.Name, f.out.Check.ID)
	switch {
	case f.isMissing(err, "the job and its log", "actions: read"):
		return nil
	case err != nil:
		return err
	}
	var during span
	if s := failingStep(job.Steps); s != nil {
		f.out.Step = text(s.GetName(), green.MaxMessage)
		during = span{s.GetStartedAt().Time, s.GetCompletedAt().Time}
	}
	if !f.withLog {
		return nil
	}
	err = f.readLog(during)
	if errors.Is(err, errNoLog) || f.isMissing(err, "the log", "actions: read") {
		return nil
	}
	return err
}

// failingStep returns the first step that failed, or else the first one that was stopped; nil if there is none. Steps that are allowed to
// fail are successes for GitHub.
func failingStep(steps []*github.TaskStep) *github.TaskStep {
	for _, group := range [][]string{{"failure"}, {"timed_out", "cancelled"}} {
		for _, s := range steps {
			if slices.Contains(group, s.GetConclusion()) {
				return s
			}
		}
	}
	return nil
}
