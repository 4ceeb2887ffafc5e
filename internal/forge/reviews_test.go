package forge_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestOwnReview follows a review of the App from its start to its submission. Another account's pending review is never
// taken for it.
func TestOwnReview(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	ctx := t.Context()
	p := openPR(t, w, "errand/1")
	forgetest.Must(w.As("wendy").CommentOnLine(forgetest.FullName, p.Number, simgithub.NewReviewComment{Path: "dir/a.txt", Line: 1, Body: "Why?"}))(t)
	forgetest.Must(w.As("octo").Review(forgetest.FullName, p.Number, simgithub.NewReview{Body: "Not yet."}))(t)
	thread := forgetest.Must(w.Forge.Threads(ctx, w.Repo, p.Number))(t)[0].Node
	if v := forgetest.Must(w.Forge.PendingReview(ctx, w.Repo, p.Number))(t); v != nil {
		t.Errorf("before the start: got %+v", v)
	}
	node := forgetest.Must(w.Forge.StartReview(ctx, w.Repo, p.Node))(t)
	_, err := w.Forge.StartReview(ctx, w.Repo, p.Node)
	if class, _ := forge.Classify(err); class != forge.ClassTemporary {
		t.Errorf("start it again: got %v", err)
	}
	for i := range 103 { // two pages
		if err := w.Forge.AddReply(ctx, w.Repo, node, thread, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Forge.AddReply(ctx, w.Repo, node, "PRRT_none", "lost"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("reply in a thread that does not exist: got %v", err)
	}
	v := forgetest.Must(w.Forge.PendingReview(ctx, w.Repo, p.Number))(t)
	if v == nil || v.Node != node || !v.Pending || len(v.Replies) != 103 || v.Replies[102].Body != "102" || v.Replies[0].Author.ID != w.App().BotID {
		t.Fatalf("got %+v", v)
	}
	for range 2 {
		if err := w.Forge.DeletePendingReply(ctx, w.Repo, v.Replies[1].Node); err != nil {
			t.Errorf("delete a reply: %v", err)
		}
	}
	if err := w.Forge.SubmitReview(ctx, w.Repo, node, "All done."); err != nil {
		t.Fatal(err)
	}
	got := forgetest.Must(w.Forge.OwnReview(ctx, w.Repo, node))(t)
	if got.Pending || len(got.Replies) != 102 {
		t.Errorf("after the submission: pending %v, %d replies", got.Pending, len(got.Replies))
	}
	if v := forgetest.Must(w.Forge.PendingReview(ctx, w.Repo, p.Number))(t); v != nil {
		t.Errorf("after the submission: got pending review %+v", v)
	}
	err = w.Forge.SubmitReview(ctx, w.Repo, node, "Again.")
	if class, _ := forge.Classify(err); class != forge.ClassPermanent {
		t.Errorf("submit it again: got %v", err)
	}
	for range 2 {
		if err := w.Forge.ResolveThread(ctx, w.Repo, thread); err != nil {
			t.Errorf("resolve the thread: %v", err)
		}
	}

	second := forgetest.Must(w.Forge.StartReview(ctx, w.Repo, p.Node))(t)
	for range 2 {
		if err := w.Forge.DeleteReview(ctx, w.Repo, second); err != nil {
			t.Errorf("delete a pending review: %v", err)
		}
	}
	if _, err := w.Forge.OwnReview(ctx, w.Repo, second); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("read a deleted review: got %v", err)
	}
}

// TestReviewInALockedConversation: the refusal is temporary, as in REST.
func TestReviewInALockedConversation(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p := openPR(t, w, "errand/1")
	if err := w.As("octo").Lock(forgetest.FullName, p.Number, ""); err != nil {
		t.Fatal(err)
	}
	_, err := w.Forge.StartReview(t.Context(), w.Repo, p.Node)
	if class, _ := forge.Classify(err); class != forge.ClassTemporary || !errors.Is(err, forge.ErrLocked) {
		t.Errorf("got %v", err)
	}
}
