package web

import (
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// draft is a comment of a pending review. GitHub shows a pending review only to its author. Here, drafts are stored
// with the pages until the review is submitted, so that other people cannot see them.
type draft struct {
	simgithub.NewReviewComment
	ID     int64
	Commit string // the head when the line was shown
}

// draftKey identifies one person's review of one pull request.
type draftKey struct {
	login, full string
	number      int
}

// draftsKey returns a key that ignores the case of repositories, like addresses.
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

// dropDrafts deletes one draft, or all with id 0.
func (w *site) dropDrafts(k draftKey, id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drafts[k] = slices.DeleteFunc(w.drafts[k], func(d draft) bool { return id == 0 || d.ID == id })
	if len(w.drafts[k]) == 0 {
		delete(w.drafts, k)
	}
}
