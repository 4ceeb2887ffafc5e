package walk

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/errand-bot/errand/internal/heavytest"
)

// chance draws without rapid: a control wants a walk that fails, and no smaller one.
type chance struct{ *rand.Rand }

func (c chance) roll(_ string, n int) int { return c.IntN(n) }

// broken is what a walk ends with when a promise is broken.
type broken struct{ why string }

// TestControls plants faults and wants the walks to notice each of them, and to say which promise it
// breaks. A model that notices none of them would prove nothing.
func TestControls(t *testing.T) {
	t.Parallel()
	controls(t, "controls", map[string]control{
		"permission is not read":              {plant{anybody: true}, "trust end", "mention,chatter"},
		"nobody approved":                     {plant{ghosts: true}, "approval", ""},
		"an ended task begins again":          {plant{revive: true}, "end", "merge"},
		"nothing is shown":                    {plant{silent: true}, "silence told heard", ""},
		"what was posted is not looked for":   {plant{twice: true}, "look", "trouble"},
		"no VM is deleted":                    {plant{keepVMs: true}, "VMs", "merge"},
		"the job that launches a run is lost": {plant{loseLaunch: true}, "moves", ""},
		"nobody let it be published":          {plant{unseen: true}, "approval", ""},
		"an edited plan is approved":          {plant{stale: true}, "approval", "edit plan,thumb"},
		"a pull request is not looked for":    {plant{secondPull: true}, "twice", ""},
	})
}

// TestHeavyControls is TestControls for what takes many walks to show.
func TestHeavyControls(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	controls(t, "long controls", map[string]control{"what runs cost is not counted": {plant{freeMoney: true}, "money", "agent"}})
}

// control is a fault that walks have to notice.
type control struct {
	fault plant
	want  string // how the complaint begins, one of these
	acts  string // what is done more often than else, so that it shows soon
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
				t.Fatal("no walk noticed it")
			}
			line, _, _ := strings.Cut(why, "\n")
			about, _, _ := strings.Cut(why, ":")
			if !slices.Contains(strings.Fields(c.want), about) {
				t.Errorf("it was noticed as %q, want a broken promise about %s", line, c.want)
			}
			fallen.Add(1)
			t.Log(line)
		})
	}
}

// noticed returns the complaint of the first of some walks that breaks a promise under a fault.
func noticed(fault plant, table []act, walks int) string {
	for seed := range walks {
		if why := walkUnder(fault, table, uint64(seed)); why != "" {
			return why
		}
	}
	return ""
}

// more is the table with some acts more often.
func more(names string) []act {
	table := acts()
	for i := range table {
		if slices.Contains(strings.Split(names, ","), table[i].name) {
			table[i].weight += 40
			table[0].weight = 30 // less good will, more of this
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
