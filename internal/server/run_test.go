package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// shop is a GitHub with the repository octo/shop and its issue 4.
type shop struct{ watch.SweepReader }

func (shop) Installations(context.Context) ([]forge.Installation, error) {
	return []forge.Installation{{ID: 7}}, nil
}

func (shop) InstallationRepos(context.Context, int64) ([]state.Repo, error) {
	return []state.Repo{{ID: 71, Owner: "octo", Name: "shop"}}, nil
}

func (shop) Issue(_ context.Context, _ forge.Repo, number int) (forge.Issue, error) {
	return forge.Issue{Number: number, URL: "https://git.example/octo/shop/issues/4", UpdatedAt: time.Now(), Issue: state.Issue{Title: "Bug", Body: "It breaks."}}, nil
}

// TestRepeatedRunCountsOnce: the same request again, as after a lost answer, gets no refusal, and is not in the audit log again.
func TestRepeatedRunCountsOnce(t *testing.T) {
	t.Parallel()
	s, _ := endedTask(t, forgetest.NewFake(t, (&hub{}).serve).URL)
	s.sweeper.Store(watch.NewSweeper(watch.SweeperConfig{Store: s.store, GitHub: shop{}, Log: zerolog.Nop(), Now: time.Now}))
	text := state.FreezeHash("Bug", "It breaks.")
	for i, c := range []struct{ id, text, result, refused string }{
		{id: "1", text: "another", refused: "the title or text of octo/shop#4 has changed since it was shown to you; read it again"},
		{id: "1", text: text, result: "started with the text " + text},
		{id: "1", text: text, result: "this event was applied before"},
		{id: "2", text: text, refused: "errand is already working on octo/shop#4 (getting ready)"},
	} {
		done, err := s.beginRun(t.Context(), "octo/shop", 4, c.text, store.Action{ID: c.id, By: "the operator", Command: "run"})
		var refusal admin.Refusal
		if errors.As(err, &refusal); string(refusal) != c.refused || (err != nil) != (c.refused != "") || done.Result != c.result || done.Refused {
			t.Errorf("request %d: got %+v, error %v", i, done, err)
		}
	}
	list, err := s.store.Audit.List(t.Context(), 9, func(a store.Action) bool { return a.Command == "run" })
	if err != nil || len(list) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
}
