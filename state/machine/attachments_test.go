package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// launchWith launches the run with files attached to the frozen text that has a hash.
func (l *life) launchWith(hash string, files []string, list ...state.Attachment) {
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: l.task.Run.ID, VM: state.VM{Name: "vm1"}, Started: l.now,
		Attachments: list, FrozenFiles: files, FrozenHash: hash}}})
}

// TestAttachmentsBelongToTheFrozenText: the digests of attached files are part of the hash on which a plan is based, once they
// are read, and not for another text or under a plan that waits for approval.
func TestAttachmentsBelongToTheFrozenText(t *testing.T) {
	t.Parallel()
	text := state.FreezeHash("Bug", "It breaks.")
	both := state.FreezeHash("Bug", "It breaks.", "d1")
	if text == both {
		t.Fatal("the files have no effect on the hash")
	}
	image := state.Attachment{ID: "one", Name: "one.png", SHA256: "d1"}
	lost := state.Attachment{ID: "two", Unread: "it is empty"}
	l := newLife(t)
	l.trigger()
	l.start()
	l.launchWith(text, []string{"d1"}, image, lost)
	if f := l.task.Frozen; f.Hash != both || !slices.Equal(f.Files, []string{"d1"}) || !f.Matches("Bug", "It breaks.") || f.Matches("Bug", "It works.") {
		t.Fatalf("frozen text: %+v", f)
	}
	if !slices.Equal(l.task.Attachments, []state.Attachment{image, lost}) {
		t.Fatalf("attachments: %+v", l.task.Attachments)
	}
	l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
	l.postPlan(11)
	p := l.task.NewestPlan()
	if p.IssueHash != both {
		t.Errorf("the plan is based on %s, want %s", p.IssueHash, both)
	}
	// The same text again is no edit; another one makes a revision, for which unread attachments are tried again.
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.IssueEdited{Issue: &state.Issue{Title: "Bug", Body: "It breaks."}}})
	if l.task.Frozen.Hash != both || l.task.NewestPlan().Superseded {
		t.Errorf("the same text: frozen as %+v", l.task.Frozen)
	}
	c := &change{t: l.task, e: event.Event{Now: l.now, By: writer, Payload: event.IssueEdited{Issue: &state.Issue{Title: "Bug", Body: "It breaks.\r\n"}}}}
	if c.freeze(); l.task.Frozen.Hash != both || !slices.Equal(l.task.Frozen.Files, []string{"d1"}) {
		t.Errorf("frozen again: %+v", l.task.Frozen)
	}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.IssueEdited{Issue: &state.Issue{Title: "Bug", Body: "It works."}}})
	if f := l.task.Frozen; f.Hash != state.FreezeHash("Bug", "It works.") || f.Files != nil || !slices.Equal(l.task.Attachments, []state.Attachment{image}) {
		t.Errorf("another text: frozen as %+v, attachments %+v", f, l.task.Attachments)
	}
	// A launch that began before the edit read the files of the old text.
	l.launchWith(both, []string{"d1"}, image)
	if f := l.task.Frozen; f.Files != nil || len(l.task.Attachments) != 1 {
		t.Errorf("files of the old text: frozen as %+v, attachments %+v", f, l.task.Attachments)
	}
}

// TestAttachmentsDoNotOutdateAPlan: a plan of an earlier version, which knew no attachments, stays valid.
func TestAttachmentsDoNotOutdateAPlan(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
	l.postPlan(11)
	hash := l.task.Frozen.Hash
	c := &change{t: l.task}
	read := state.Launch{Attachments: []state.Attachment{{ID: "one", SHA256: "d1"}}, FrozenFiles: []string{"d1"}, FrozenHash: hash}
	c.storeAttachments(read)
	if l.task.Frozen.Hash != hash || l.task.Frozen.Files != nil || len(l.task.Attachments) != 1 {
		t.Errorf("frozen as %+v, attachments %+v", l.task.Frozen, l.task.Attachments)
	}
	l.task.Plans[0].Superseded = true
	c.storeAttachments(read)
	if l.task.Frozen.Hash != state.FreezeHash("Bug", "It breaks.", "d1") {
		t.Errorf("for the next revision: frozen as %+v", l.task.Frozen)
	}
}
