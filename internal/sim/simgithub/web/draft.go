package web

import (
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// draft is a comment of a review that is still being written. GitHub shows a pending review to its author only; here it
// lives with the pages until it is submitted, so that nobody else can see it by any way.
type draft struct {
	simgithub.NewReviewComment
	ID     int64
	Commit string // the head that the line was read from
}

// draftKey is one person's review of one pull request.
type draftKey struct {
	login, full string
	number      int
}

// draftsKey takes repositories without regard to case, as addresses do.
func draftsKey(login, full string, number int) draftKey {
	return draftKey{login, strings.ToLower(full), number}
}

func (w *site) draftsOf(k draftKey) []draft {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.drafts[k])
}

func (w *site) addDraft(k draftKey, d draft) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.drafts[k] {
		d.ID = max(d.ID, o.ID)
	}
	d.ID++
	w.drafts[k] = append(w.drafts[k], d)
}

// dropDrafts forgets one draft, or with id 0 all.
func (w *site) dropDrafts(k draftKey, id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drafts[k] = slices.DeleteFunc(w.drafts[k], func(d draft) bool { return id == 0 || d.ID == id })
	if len(w.drafts[k]) == 0 {
		delete(w.drafts, k)
	}
}
