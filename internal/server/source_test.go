package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/fleet"
)

// TestSource: the pages show each candidate in its place, and the log the cheapest of those that can be ordered.
func TestSource(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	gone, soon := now.Add(-time.Hour), now.Add(time.Hour)
	choice := func(where string, micro int64, change func(*fleet.Offer)) fleet.Choice {
		o := fleet.Offer{Type: "cx43", Location: where, VCPU: 8, MemoryMB: 16384, DiskGB: 160, MicroHour: micro, Currency: "EUR", Available: true}
		change(&o)
		return fleet.Choice{Candidate: fleet.Candidate{Type: "cx43", Location: where}, Offer: o, Sold: true}
	}
	d := fleet.Description{Kind: "cloud", Isolation: fleet.IsolationVM, Notes: []string{"a note"}, Choices: []fleet.Choice{
		choice("fsn1", 26_400, func(*fleet.Offer) {}),
		choice("nbg1", 25_300, func(o *fleet.Offer) { o.GoneAfter = soon }),
		choice("hel1", 10_100, func(o *fleet.Offer) { o.Available = false }),
		choice("sin", 10_200, func(o *fleet.Offer) { o.GoneAfter = gone }),
		{Candidate: fleet.Candidate{Type: "cx99", Location: "fsn1"}},
	}}
	row := func(where string, price float64, available bool, until *time.Time) admin.Candidate {
		return admin.Candidate{
			Type: "cx43", Location: where, Sold: true, Available: available, VCPU: 8, MemoryMB: 16384, DiskGB: 160, Price: price, Currency: "EUR", GoneAfter: until,
		}
	}
	want := admin.Source{Kind: "cloud", Isolation: "vm", Notes: []string{"a note"}, Candidates: []admin.Candidate{
		row("fsn1", 0.0264, true, nil), row("nbg1", 0.0253, true, &soon), row("hel1", 0.0101, false, nil), row("sin", 0.0102, false, &gone),
		{Type: "cx99", Location: "fsn1"},
	}}
	if diff := cmp.Diff(want, sourceOf(d, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := cheapest(d, now); got != "cx43/nbg1 for 0.0253 EUR an hour" {
		t.Errorf("the cheapest is %s", got)
	}
	d.Choices = d.Choices[2:]
	if got := cheapest(d, now); got != "none can be ordered now" {
		t.Errorf("without any: %s", got)
	}
}
