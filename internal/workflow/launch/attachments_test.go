package launch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/attachment"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

const png = "\x89PNG\r\n\x1a\n"

// withAttachments returns a world whose steps read attachments from its GitHub.
func withAttachments(t *testing.T) *workflowtest.World {
	t.Helper()
	w := workflowtest.New(t)
	c, err := attachment.New(w.BaseURL(), nil)
	workflowtest.Check(t, err)
	w.Config.Attachments = c
	w.Steps = workflow.New(w.Config)
	return w
}

// attach uploads a file, by a person, and returns its address.
func attach(w *workflowtest.World, login, name, content string) string {
	w.T.Helper()
	address, err := w.As(login).Upload(workflowtest.RepoName, name, []byte(content))
	workflowtest.Check(w.T, err)
	return address
}

// setBody changes the issue's text, on GitHub and as it was frozen.
func setBody(w *workflowtest.World, body string) {
	w.T.Helper()
	workflowtest.Check(w.T, w.Ada.EditIssue(workflowtest.RepoName, w.Task.Key.Issue, simgithub.IssueEdit{Body: &body}))
	w.Task.Frozen.Body, w.Task.Frozen.Hash = body, state.FreezeHash(w.Task.Frozen.Title, body)
}

// placed returns the content of the files next to the checkout, by name.
func placed(w *workflowtest.World) map[string]string {
	w.T.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(w.Host.Dir), "attachments"))
	if err != nil {
		return out
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(filepath.Dir(w.Host.Dir), "attachments", e.Name()))
		workflowtest.Check(w.T, err)
		out[e.Name()] = string(content)
	}
	return out
}

// TestLaunchReadsAttachments: those of the issue, a comment, a review and threads are read once and placed on every VM.
func TestLaunchReadsAttachments(t *testing.T) {
	t.Parallel()
	w := withAttachments(t)
	inBody, inComment, inLog := attach(w, "ada", "a.png", png+"body"), attach(w, "bob", "b.gif", "GIF89a comment"), attach(w, "ada", "x.log", "exit 1")
	setBody(w, "See ![a]("+inBody+"), again ![a]("+inBody+") and [log]("+inLog+").")
	c, err := w.As("bob").Comment(workflowtest.RepoName, w.Task.Key.Issue, `<img src="`+inComment+`" width="20">`)
	workflowtest.Check(t, err)
	w.Task.Context.Comments = []state.DiscussionComment{{ID: c.ID, By: w.Person("bob"), At: time.Now(), Body: c.Body}}
	w.Launching(state.RunPreliminary)
	l := w.Launched()
	if len(l.Attachments) != 3 || len(l.FrozenFiles) != 2 || l.FrozenHash != w.Task.Frozen.Hash {
		t.Fatalf("launch: %+v", l)
	}
	got := placed(w)
	for _, want := range []string{png + "body", "GIF89a comment", "exit 1"} {
		found := false
		for name, content := range got {
			found = found || content == want && strings.Contains(w.Prompt(), name)
		}
		if !found {
			t.Errorf("%q is not placed, or not in the prompt: %q", want, got)
		}
	}
	// The next run has them although GitHub no longer does, and another checkout.
	w.Task.Attachments, w.Task.Frozen.Files = l.Attachments, l.FrozenFiles
	workflowtest.Check(t, os.RemoveAll(filepath.Join(filepath.Dir(w.Host.Dir), "attachments")))
	workflowtest.Check(t, w.Fault(simgithub.Fault{Path: "^/storage/", Status: 500}))
	w.EndRun(state.RunSucceeded, "")
	w.Launching(state.RunPlan)
	if l := w.Launched(); len(l.Attachments) != 0 || len(l.FrozenFiles) != 2 || len(placed(w)) != 3 {
		t.Errorf("second launch: %+v, placed %q", l, placed(w))
	}
}

// TestConditionsHaveAttachments: images in the condition of the approval and of the one that it replaced reach the agent. A
// condition that an older version stored names no comment, so its images are left alone.
func TestConditionsHaveAttachments(t *testing.T) {
	t.Parallel()
	w := withAttachments(t)
	approve := func(hash, login, content string) *state.Approval {
		c, err := w.As(login).Comment(workflowtest.RepoName, w.Task.Key.Issue, "@errand approve with: ![a]("+attach(w, login, "a.png", content)+")")
		workflowtest.Check(t, err)
		_, with, _ := strings.Cut(c.Body, "with: ")
		a := &state.Approval{Hash: hash, By: w.Person(login), Via: state.ViaCommand, With: with, CommentID: c.ID}
		w.Task.Feedback = append(w.Task.Feedback, state.Feedback{ID: a.ConditionID(), Kind: state.FeedbackCondition, By: a.By, Body: with})
		return a
	}
	oldest, first, second := approve("h0", "ada", png+"old"), approve("h1", "bob", png+"first"), approve("h2", "ada", png+"second")
	oldest.CommentID = 0
	w.Task.Approval, second.Before, first.Before = second, first, oldest
	w.Launching(state.RunPreliminary)
	l := w.Launched()
	if got := slices.Sorted(maps.Values(placed(w))); !slices.Equal(got, []string{png + "first", png + "second"}) || len(l.FrozenFiles) != 0 || len(l.Attachments) != 2 {
		t.Errorf("placed %q, launch %+v", got, l)
	}
}

// TestAgentIsToldOfAttachments: the settings of the agent name the directory of attachments if any file was placed there.
func TestAgentIsToldOfAttachments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		want    bool
	}{"an image": {png, true}, "an unread one": {"no image", false}, "none": {"", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withAttachments(t)
			agents, err := registry.New(registry.Config{Adapter: "api", Command: []string{"agent"}, Model: "m"})
			workflowtest.Check(t, err)
			w.Config.Agents = agents
			w.Steps = workflow.New(w.Config)
			if tc.content != "" {
				setBody(w, "See ![a]("+attach(w, "ada", "a.png", tc.content)+").")
			}
			w.Launching(state.RunPreliminary)
			w.Launched()
			var set wire.Settings
			for _, f := range w.Host.Started[0].Files {
				if filepath.Base(f.Path) == "agent.json" {
					workflowtest.Check(t, json.Unmarshal(f.Content, &set))
				}
			}
			want := ""
			if tc.want {
				want = filepath.Join(filepath.Dir(w.Host.Dir), "attachments")
			}
			if set.WorkDir == "" || set.Attachments != want {
				t.Errorf("checkout %q, attachments %q, want %q", set.WorkDir, set.Attachments, want)
			}
		})
	}
}

// TestUnreadAttachmentsAreNamed: if a file cannot be read, for any reason, the run starts and its prompt gives the reason.
func TestUnreadAttachmentsAreNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		change  func(w *workflowtest.World)
		want    string
	}{
		"no image":                   {"text", nil, attachment.ReasonKind},
		"too large":                  {png + strings.Repeat(".", attachment.MaxBytes), nil, attachment.ReasonSize},
		"expired":                    {png, func(w *workflowtest.World) { fail(w, "^/storage/", 404) }, attachment.ReasonSession},
		"GitHub answers with errors": {png, func(w *workflowtest.World) { fail(w, "^/storage/", 503) }, attachment.ReasonRefused},
		"the text cannot be read":    {png, func(w *workflowtest.World) { fail(w, `/issues/\d+$`, 404) }, attachment.ReasonFailed},
		"the text has changed since": {png, func(w *workflowtest.World) {
			body := "Something else."
			workflowtest.Check(w.T, w.Ada.EditIssue(workflowtest.RepoName, w.Task.Key.Issue, simgithub.IssueEdit{Body: &body}))
		}, attachment.ReasonNotShown},
		"another task has all": {png, func(w *workflowtest.World) {
			for i := range 40 {
				w.Task.Attachments = append(w.Task.Attachments, state.Attachment{ID: fmt.Sprint(i), Unread: "x"})
			}
		}, attachment.ReasonCount},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withAttachments(t)
			setBody(w, "See ![a]("+attach(w, "ada", "a.png", tc.content)+").")
			if tc.change != nil {
				tc.change(w)
			}
			w.Launching(state.RunPreliminary)
			l := w.Launched()
			if p := w.Prompt(); !strings.Contains(p, "unread, because "+tc.want) || len(l.FrozenFiles) != 0 || len(placed(w)) != 0 {
				t.Errorf("want %q; launch %+v, prompt:\n%s", tc.want, l, p)
			}
		})
	}
}

func fail(w *workflowtest.World, path string, status int) {
	workflowtest.Check(w.T, w.Fault(simgithub.Fault{Path: path, Status: status}))
}

// TestAttachmentsAreLimited: a launch reads ten; the others are named, and the next launch reads them.
func TestAttachmentsAreLimited(t *testing.T) {
	t.Parallel()
	w := withAttachments(t)
	var body strings.Builder
	for i := range 13 {
		fmt.Fprintf(&body, "![x](%s)\n", attach(w, "ada", "x.png", png+fmt.Sprint(i)))
	}
	setBody(w, body.String())
	w.Launching(state.RunPreliminary)
	l := w.Launched()
	if len(l.Attachments) != 10 || len(placed(w)) != 10 || strings.Count(w.Prompt(), attachment.ReasonCount) != 3 {
		t.Errorf("%d attachments, %d placed", len(l.Attachments), len(placed(w)))
	}
	w.Task.Attachments = l.Attachments
	if l = w.Launched(); len(l.Attachments) != 3 || len(l.FrozenFiles) != 13 {
		t.Errorf("second launch: %d attachments, %d of the frozen text", len(l.Attachments), len(l.FrozenFiles))
	}
}

// TestOnlyVisibleTextsHaveAttachments: images in texts that the agent does not see, and in hidden parts, are left alone.
func TestOnlyVisibleTextsHaveAttachments(t *testing.T) {
	t.Parallel()
	w := withAttachments(t)
	setBody(w, "See <!-- ![a]("+attach(w, "ada", "a.png", png)+") --> <span hidden>![a]("+attach(w, "ada", "a.png", png)+")</span>.")
	_, err := w.As("eve").Comment(workflowtest.RepoName, w.Task.Key.Issue, "![x]("+attach(w, "eve", "x.png", png)+")")
	workflowtest.Check(t, err)
	w.Launching(state.RunPreliminary)
	if l := w.Launched(); len(l.Attachments) != 0 || strings.Contains(w.Prompt(), "## Attachments") {
		t.Errorf("launch: %+v", l)
	}
	w.Task.Context.ShowsIssue = false
	setBody(w, "See ![a]("+attach(w, "ada", "a.png", png)+").")
	if l := w.Launched(); len(l.Attachments) != 0 {
		t.Errorf("a withheld text: %+v", l)
	}
}

// TestLostAttachmentIsRestored: a lost copy is downloaded again if GitHub still serves the same content, and listed as lost
// otherwise. A VM that takes no file delays the run.
func TestLostAttachmentIsRestored(t *testing.T) {
	t.Parallel()
	w := withAttachments(t)
	setBody(w, "See ![a]("+attach(w, "ada", "a.png", png)+").")
	w.Launching(state.RunPreliminary)
	w.Host.Errs["Put"] = errors.New("the disk of the VM is full")
	if _, err := w.Try(state.JobLaunch); err == nil || len(w.Host.Started) != 0 {
		t.Errorf("error %v, started %d", err, len(w.Host.Started))
	}
	delete(w.Host.Errs, "Put")
	w.Task.Attachments = w.Launched().Attachments
	// The copy is deleted: it is downloaded again.
	stored, err := w.Files.Attachments()
	workflowtest.Check(t, err)
	for _, f := range stored {
		workflowtest.Check(t, w.Files.DeleteAttachment(f.Ref))
	}
	launchAgain := func(kind state.RunKind) {
		w.EndRun(state.RunSucceeded, "")
		workflowtest.Check(t, os.RemoveAll(filepath.Join(filepath.Dir(w.Host.Dir), "attachments")))
		w.Launching(kind)
		if l := w.Launched(); len(l.Attachments) != 0 {
			t.Errorf("new attachments %v, want none", l.Attachments)
		}
	}
	launchAgain(state.RunPlan)
	if again, _ := w.Files.Attachments(); len(again) != 1 || len(placed(w)) != 1 || strings.Contains(w.Prompt(), "unread") {
		t.Errorf("stored %v, placed %v, prompt:\n%s", again, placed(w), w.Prompt())
	}
	// GitHub serves different content: its digest is not the stored one.
	w.Task.Attachments[0].SHA256 = strings.Repeat("0", 64)
	launchAgain(state.RunPlan)
	if got := placed(w); len(got) != 0 || !strings.Contains(w.Prompt(), "unread, because errand's copy of it was lost") {
		t.Errorf("placed %v, prompt:\n%s", got, w.Prompt())
	}
}
