package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// maxShown is how many bytes of a diff a comment shows; the whole is on the task's page.
const maxShown = 20_000

// Show makes the diff of the changeset that waits to be published, for people to approve. It only
// reads GitHub, and stores the whole diff next to the changeset.
func (s *Steps) Show(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t := w.Task
	if t.Work == nil {
		return step.Done(), nil
	}
	cs, err := s.Files.LoadChangeset(t.Work.Ref)
	if err != nil {
		return event.Event{}, fmt.Errorf("load the changeset: %w", err)
	}
	digest, err := cs.Digest()
	if err != nil {
		return event.Event{}, err
	}
	base, err := s.GitHub.Tree(ctx, w.Repo, cs.Base)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the base tree: %w", err)
	}
	var m *merge
	if second := secondParent(cs); second != "" { // the push gate saw that it is the base branch's
		if m, err = s.mergeOf(ctx, w, cs.Base, second); err != nil {
			return event.Event{}, err
		}
	}
	files, err := netDiff(cs, base, m, func(blob string) ([]byte, error) { return s.GitHub.Blob(ctx, w.Repo, blob) })
	if err != nil {
		return event.Event{}, fmt.Errorf("make the diff: %w", err)
	}
	full, _ := s.Redact.Redact(diffText(cs, m, files))
	if err := s.Files.SaveDiff(t.Work.Ref, full); err != nil {
		return event.Event{}, fmt.Errorf("store the diff: %w", err)
	}
	text, cut := headLines(full, maxShown)
	if cut > 0 && (s.View.StatusURL == nil || s.View.StatusURL(t) == "") {
		return event.Event{}, &step.Problem{Reason: "The changes are too large to show in full in a comment, and errand has no public page that shows them, so nobody could approve them.",
			Hint: "The operator can set `public_url`; then comment `retry`. Or describe in a comment how to make the changes smaller.", Class: state.ClassConfig, Permanent: true}
	}
	p := state.Plan{Text: text, Publish: &state.Changes{
		Ref: t.Work.Ref, Digest: digest, Tree: t.Work.LocalTree, Cut: cut, Stat: statLines(files),
	}}
	for _, f := range files {
		if !slices.Contains(p.Files, f.path) { // a path may be compared with two
			p.Files = append(p.Files, f.path)
		}
	}
	p.Files = p.Files[:min(len(p.Files), maxStat)]
	return event.Event{Run: t.Work.Run, Payload: event.DiffReady{Plan: p}}, nil
}

// headLines keeps the first lines of a text up to a size, and counts those that it leaves out.
func headLines(text string, most int) (head string, cut int) {
	if len(text) <= most {
		return text, 0
	}
	end := strings.LastIndexByte(text[:most], '\n') + 1
	return text[:end], strings.Count(text[end:], "\n")
}
