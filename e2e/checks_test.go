package e2e

import (
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// checkCmd reports a check on the pull request's head: check NAME [CONCLUSION] [OPTION …]. Without a conclusion it runs. Options are
// as=app (of another App than GitHub Actions) and as=status, on=BRANCH, workflow=FILE, step=NAME and log=FILE (the step that decides, and what it
// printed), annotation=LEVEL:PATH:LINE:MESSAGE, summary=TEXT, and rerun=CONCLUSION (without it a re-run goes on until it is reported).
func checkCmd(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	j, kind, sha := simgithub.Job{Name: args[0]}, "", ""
	for _, arg := range args[1:] {
		name, value, named := strings.Cut(arg, "=")
		switch {
		case !named:
			j.Conclusion = arg
		case name == "as" && (value == "app" || value == "status"):
			kind = value
		case name == "on":
			if sha = s.repo().Git.Resolve(s.named(value)); sha == "" {
				ts.Fatalf("there is no branch %s", value)
			}
		case name == "workflow":
			j.Workflow = value
		case name == "step":
			j.Step = value
		case name == "log":
			j.Log = ts.ReadFile(value)
		case name == "annotation":
			j.Annotations = append(j.Annotations, annotation(ts, value))
		case name == "summary":
			j.Summary = value
		case name == "rerun":
			j.Rerun = value
		default:
			ts.Fatalf("unknown argument %q", arg)
		}
	}
	if sha == "" {
		i := s.look().pull()
		if i == nil {
			ts.Fatalf("the task has no pull request")
		}
		sha = i.Pull.HeadSHA
	}
	if kind == "status" {
		if j.Conclusion == "" {
			j.Conclusion = "pending"
		}
		ts.Check(s.w.GitHub.Status(s.full, sha, j.Name, j.Conclusion, j.Summary))
		return
	}
	j.Foreign = kind == "app"
	ts.Check(s.w.GitHub.Job(s.full, sha, j))
}

// annotation reads LEVEL:PATH:LINE:MESSAGE.
func annotation(ts *testscript.TestScript, text string) simgithub.Annotation {
	parts := strings.SplitN(text, ":", 4)
	if len(parts) < 4 {
		ts.Fatalf("annotation %q: want LEVEL:PATH:LINE:MESSAGE", text)
	}
	line, err := strconv.Atoi(parts[2])
	ts.Check(err)
	return simgithub.Annotation{Level: parts[0], Path: parts[1], Line: line, Message: parts[3]}
}
