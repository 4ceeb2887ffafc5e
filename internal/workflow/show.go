package workflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/state"
)

// maxShown bounds what of a diff goes into a comment, in bytes; the whole is on the task's page.
const maxShown = 20_000

// showChanges makes the diff of the changeset that waits to be published, for people to approve. It only
// reads GitHub, and stores the diff in full beside the changeset.
func (s *Steps) showChanges(ctx context.Context, w *unit) (state.Event, error) {
	t := w.task
	if t.Work == nil {
		return done(), nil
	}
	cs, err := s.Files.LoadChangeset(t.Work.Ref)
	if err != nil {
		return state.Event{}, fmt.Errorf("load the changeset: %w", err)
	}
	digest, err := cs.Digest()
	if err != nil {
		return state.Event{}, err
	}
	base, err := s.GitHub.Tree(ctx, w.repo, cs.Base)
	if err != nil {
		return state.Event{}, fmt.Errorf("read the base tree: %w", err)
	}
	var m *merge
	if second := secondParent(cs); second != "" { // the push gate saw that it is the base branch's
		if m, err = s.mergeOf(ctx, w, cs.Base, second); err != nil {
			return state.Event{}, err
		}
	}
	files, err := netDiff(cs, base, m, func(blob string) ([]byte, error) { return s.GitHub.Blob(ctx, w.repo, blob) })
	if err != nil {
		return state.Event{}, fmt.Errorf("make the diff: %w", err)
	}
	full, _ := s.Redact.Redact(diffText(cs, m, files))
	if err := s.Files.SaveDiff(t.Work.Ref, full); err != nil {
		return state.Event{}, fmt.Errorf("store the diff: %w", err)
	}
	text, cut := headLines(full, maxShown)
	if cut > 0 && (s.StatusURL == nil || s.StatusURL(t) == "") {
		return state.Event{}, &Problem{Reason: "The changes are too large to be shown in a comment in full, and there is no page that people could read them on, so that nobody could approve them.",
			Hint: "The operator can set `public_url`; then comment `retry`. Or say in a comment how the changes could be smaller.", Class: "config", Permanent: true}
	}
	p := state.Plan{Text: text, Publish: &state.Changes{Ref: t.Work.Ref, Digest: digest, Tree: t.Work.LocalTree, Cut: cut, Stat: statLines(files)}}
	for _, f := range files {
		if !slices.Contains(p.Files, f.path) { // a path may be compared with two
			p.Files = append(p.Files, f.path)
		}
	}
	p.Files = p.Files[:min(len(p.Files), maxStat)]
	return state.Event{Kind: state.EventShown, Run: t.Work.Run, Plan: &p}, nil
}

// mayPublish holds a changeset that needs people's approval against what they approved: its digest, and
// whether the person still may, asked for the last time. The event says that the approval does not hold.
func (s *Steps) mayPublish(ctx context.Context, w *unit, cs *changeset.Changeset) (state.Event, bool, error) {
	t := w.task
	if t.Settings.Publish != state.PublishAfterApproval {
		return state.Event{}, true, nil
	}
	digest, err := cs.Digest()
	if err != nil {
		return state.Event{}, false, err
	}
	plan := planByHash(t, t.Work.Approved)
	if plan == nil || plan.Publish == nil || plan.Publish.Approved == nil || plan.Publish.Digest != digest || plan.Publish.Tree != t.Work.LocalTree {
		return state.Event{}, false, &Problem{Reason: "The commits that are stored are not the ones that were approved, so nothing was published.",
			Hint: "Comment `retry fresh` to do the work again on a new VM.", Class: "internal", Permanent: true}
	}
	if w.job.Attempted { // it has begun: a 👍 that is taken back now does nothing
		return state.Event{}, true, nil
	}
	why, err := s.stillApproved(ctx, w, plan.Publish.Approved)
	if err != nil {
		return state.Event{}, false, fmt.Errorf("check the approval before publishing: %w", err)
	}
	if why != "" {
		return state.Event{Kind: state.EventNoApproval, Detail: why, Candidate: &state.Candidate{Approval: *plan.Publish.Approved}}, false, nil
	}
	return state.Event{}, true, nil
}

// headLines keeps the first lines of a text up to a size, and counts those that it leaves out.
func headLines(text string, most int) (head string, cut int) {
	if len(text) <= most {
		return text, 0
	}
	end := strings.LastIndexByte(text[:most], '\n') + 1
	return text[:end], strings.Count(text[end:], "\n")
}
