package walk

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/errand-bot/errand/internal/heavytest"
)

// chance draws without rapid, because a control needs a failing walk, but not a minimal one.
type chance struct{ *rand.Rand }

func (c chance) roll(_ string, n int) int { return c.IntN(n) }

// broken is the panic value of a walk that breaks a promise.
type broken struct{ why string }

// TestControls plants faults and expects the walks to detect each of them as a violation of the right promise. A model
// that detects none would prove nothing.
func TestControls(t *testing.T) {
	t.Parallel()
	controls(t, "controls", map[string]control{
		"permission is not read":               {plant{anybody: true}, "trust end", "mention,chatter"},
		"without approval":                     {plant{ghosts: true}, "approval", ""},
		"an ended task begins again":           {plant{revive: true}, "end", "merge"},
		"no sign of activity":                  {plant{silent: true}, "silence told heard", ""},
		"no check for an earlier comment":      {plant{twice: true}, "look", "trouble"},
		"VMs are not deleted":                  {plant{keepVMs: true}, "VMs", "merge"},
		"the launch job does nothing":          {plant{loseLaunch: true}, "moves", ""},
		"published without approval":           {plant{unseen: true}, "approval", ""},
		"an edited plan counts as approved":    {plant{stale: true}, "approval", "edit plan,thumb"},
		"replaced pull requests stay open":     {plant{keepOld: true}, "pulls", "old pull reopened"},
		"no check for an earlier pull request": {plant{secondPull: true}, "twice", ""},
	})
}

// TestHeavyControls is TestControls for faults that many walks are needed to detect.
func TestHeavyControls(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	controls(t, "long controls", map[string]control{"the cost of runs is not booked": {plant{freeMoney: true}, "money", "agent"}})
}

// control is a fault that walks must detect.
type control struct {
	fault plant
	want  string // possible beginnings of the complaint
	acts  string // acts that occur more often than usual, so that the fault has an effect soon
}

func controls(t *testing.T, what string, faults map[string]control) {
	t.Helper()
	var planted, fallen atomic.Int64
	t.Cleanup(func() { t.Logf("PROOF: walks: %s: planted %d noticed %d", what, planted.Load(), fallen.Load()) })
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planted.Add(1)
			why := noticed(c.fault, more(c.acts), 600)
			if why == "" {
				t.Fatal("no walk detected it")
			}
			line, _, _ := strings.Cut(why, "\n")
			about, _, _ := strings.Cut(why, ":")
			if !slices.Contains(strings.Fields(c.want), about) {
				t.Errorf("detected as %q, want a broken promise about %s", line, c.want)
			}
			fallen.Add(1)
			t.Log(line)
		})
	}
}

// noticed returns the first complaint of several walks with a fault.
func noticed(fault plant, table []act, walks int) string {
	for seed := range walks {
		if why := walkUnder(fault, table, uint64(seed)); why != "" {
			return why
		}
	}
	return ""
}

// more returns the table with some acts more often.
func more(names string) []act {
	table := acts()
	for i := range table {
		if slices.Contains(strings.Split(names, ","), table[i].name) {
			table[i].weight += 40
			table[0].weight = 30 // fewer helpful actions, more of these
		}
	}
	return table
}

func walkUnder(fault plant, table []act, seed uint64) (why string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			why = r.why
		default:
			panic(r)
		}
	}()
	w := newWorld(chance{rand.New(rand.NewPCG(seed, 5))}, fault, func(string) {}, func(why string) { panic(broken{why}) })
	w.play(table, least+spread)
	return ""
}
