package publish_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestLargeFilesAreUploaded: large files are uploaded before the commit that refers to them, and a rejected file is
// named by its path.
func TestLargeFilesAreUploaded(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	p := w.Building().Large(t, "model.bin", "weights")
	if e := w.Collected(); len(event.Of[event.Collected](e).Refusals) != 0 {
		t.Fatalf("got refusals %v", event.Of[event.Collected](e).Refusals)
	}
	quota := fmt.Sprintf(`{"objects":[{"oid":%q,"size":%d,"error":{"code":507,"message":"Over its quota"}}]}`, p.OID, p.Size)
	workflowtest.Check(t, w.Fault(simgithub.Fault{Path: "/objects/batch$", Count: 1, Status: http.StatusOK, Body: quota}))
	_, err := w.Try(state.JobCommit)
	var problem *step.Problem
	if !errors.As(err, &problem) || !problem.Permanent || problem.Reason != "GitHub rejected the large file `model.bin`: Over its quota." || problem.Hint == "" {
		t.Fatalf("%#v", err)
	}
	early := ""
	w.OnCall(func(c simgithub.Call) {
		if strings.HasSuffix(c.Route, "/git/commits") && !c.After {
			if _, err := w.LFS(workflowtest.RepoName, p.OID); err != nil {
				early = c.Path
			}
		}
	})
	w.Committed()
	w.OnCall(nil)
	if early != "" {
		t.Errorf("got %s before the upload of the large file", early)
	}
	if got, err := w.LFS(workflowtest.RepoName, p.OID); err != nil || string(got) != "weights" {
		t.Errorf("got content %q on GitHub, %v", got, err)
	}
}

// TestPointersWithoutContent: a pointer to a file that GitHub has is accepted; a pointer to a missing file is refused
// with its path.
func TestPointersWithoutContent(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	there, err := w.AddLFS(workflowtest.RepoName, []byte("there"))
	workflowtest.Check(t, err)
	_, missing := changeset.PointerTo([]byte("missing"))
	w.Building().Commit(t, "Add pointers", map[string]string{"there.bin": there, "missing.bin": missing})
	e := w.Collected()
	if len(event.Of[event.Collected](e).Refusals) != 1 || event.Of[event.Collected](e).Refusals[0].Path != "missing.bin" || event.Of[event.Collected](e).Refusals[0].Rule != "lfs" || event.Of[event.Collected](e).Refusals[0].Remedy == "" {
		t.Errorf("got refusals %+v", event.Of[event.Collected](e).Refusals)
	}
}
