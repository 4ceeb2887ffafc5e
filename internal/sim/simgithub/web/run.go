package web

import (
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// runPage serves a check run with its text.
func (w *site) runPage(v *visit) error {
	view := struct {
		Full, SHA, Name, Words string
		Title                  string
		Summary, Text          template.HTML
		Since, Until           time.Time
	}{}
	r, err := v.p.Repo(v.full())
	if err != nil {
		return err
	}
	n := slices.IndexFunc(r.CheckRuns, func(k *simgithub.CheckRun) bool { return itoa(k.ID) == v.r.PathValue("id") })
	if n < 0 {
		return notFound()
	}
	k, in := r.CheckRuns[n], w.viewer(v, r).in
	view.Full, view.SHA, view.Name, view.Title = r.FullName(), k.HeadSHA, k.Name, k.Title
	view.Words = strings.ReplaceAll(strings.TrimSpace(k.Status+" "+k.Conclusion), "_", " ")
	view.Summary, view.Text = w.md.render(k.Summary, in, fixedBoxes), w.md.render(k.Text, in, fixedBoxes)
	view.Since, view.Until = k.StartedAt, k.CompletedAt
	return v.render("run", "Check "+view.Name, view)
}
