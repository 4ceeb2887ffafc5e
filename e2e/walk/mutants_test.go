package walk

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/e2e/mutants"
	"github.com/errand-bot/errand/internal/heavytest"
)

const (
	mutantsFile = "testdata/mutants.txt"
	top         = "../.." // of the source tree

	mutantWalks = 1000 // most walks for a mutant
	openWalks   = 25   // for one that is not expected to be detected
	noneWalks   = 100  // without a mutant
)

// TestMutantsFitTheSource checks that the table matches the source, also in runs without mutants.
func TestMutantsFitTheSource(t *testing.T) {
	t.Parallel()
	table := mutants.Load(t, mutantsFile, top)
	t.Logf("%d mutants in %d files", len(table.Mutants), len(table.Changed))
}

// TestHeavyMutantsAreNoticed plays each mutant until a walk complains.
func TestHeavyMutantsAreNoticed(t *testing.T) {
	t.Parallel()
	if id := os.Getenv(mutants.Env); id != "" { // this binary contains the mutants
		playMutant(t, id)
		return
	}
	heavytest.Mark(t)
	table := mutants.Load(t, mutantsFile, top)
	list, bin, sum := table.Mutants, table.Build(t), &mutantSum{}
	t.Cleanup(func() { sum.log(t, list) })
	for _, acts := range actsOf(list) { // without a mutant no walk may complain
		t.Run("none "+acts, func(t *testing.T) {
			t.Parallel()
			if walk, why := runMutant(t, bin, mutants.Mutant{ID: "none", Acts: acts}); why != "" {
				t.Errorf("walk %d without a mutant complains: %s", walk, why)
			}
		})
	}
	for _, m := range list {
		t.Run(m.ID, func(t *testing.T) {
			t.Parallel()
			walk, why := runMutant(t, bin, m)
			if why == "" && m.Open == "" {
				t.Errorf("%s: none of %d walks detected it", m.Bug, mutantWalks)
			}
			if about, _, _ := strings.Cut(why, ":"); why != "" && m.Open == "" && !slices.Contains(m.Want, about) {
				t.Errorf("%s: walk %d detected it as %q, want a broken promise about one of %v", m.Bug, walk, why, m.Want)
			}
			sum.add(m, walk, why)
		})
	}
}

// actsOf lists the acts that the walks of a table's mutants do more often.
func actsOf(list []mutants.Mutant) []string {
	acts := []string{""}
	for _, m := range list {
		acts = append(acts, m.Acts)
	}
	slices.Sort(acts)
	return slices.Compact(acts)
}

// playMutant plays walks until one complains, and prints its number and complaint for runMutant.
func playMutant(t *testing.T, id string) {
	t.Helper()
	walks, err := strconv.Atoi(os.Getenv(mutants.Env + "_WALKS"))
	if err != nil {
		t.Fatal(err)
	}
	table := more(os.Getenv(mutants.Env + "_ACTS"))
	for seed := range walks {
		if why := ordinaryWalk(table, uint64(seed)); why != "" {
			line, rest, _ := strings.Cut(why, "\n")
			fmt.Printf("noticed %d %s\n", seed+1, line)
			t.Log(rest)
			return
		}
	}
	fmt.Printf("unnoticed %s\n", id)
}

// ordinaryWalk plays a walk like TestWalks, without rapid. It returns its complaint, or "".
func ordinaryWalk(table []act, seed uint64) (why string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			why = r.why
		case runtime.Error: // a panic of the product
			why = "panic: " + r.Error()
		default:
			panic(r)
		}
	}()
	w := newWorld(chance{rand.New(rand.NewPCG(seed, 7))}, plant{}, func(string) {}, func(why string) { panic(broken{why}) })
	w.play(w.profiled(table), least+w.roll("length", spread))
	return ""
}

var mutantSaid = regexp.MustCompile(`(?m)^(?:noticed (\d+) (.*)|unnoticed .*)$`)

// runMutant runs the binary with one mutant, and returns the first walk that complained, counted from 1, and its
// complaint.
func runMutant(t *testing.T, bin string, m mutants.Mutant) (walk int, why string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "-test.run=^TestHeavyMutantsAreNoticed$", "-test.timeout=10m")
	walks := mutantWalks
	switch {
	case m.ID == "none":
		walks = noneWalks
	case m.Open != "":
		walks = openWalks
	}
	cmd.Env = append(os.Environ(), mutants.Env+"="+m.ID, mutants.Env+"_ACTS="+m.Acts, mutants.Env+"_WALKS="+strconv.Itoa(walks))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	found := mutantSaid.FindStringSubmatch(out.String())
	if err != nil || found == nil {
		t.Fatalf("play %s: %v\n%s", m.ID, err, out.Bytes()[max(0, out.Len()-4000):])
	}
	if found[1] == "" {
		return 0, ""
	}
	walk, err = strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return walk, found[2]
}

// mutantSum is the result of all mutants.
type mutantSum struct {
	mu    sync.Mutex
	lines map[string]string
	walks map[string][]int // of detected ones, by class
}

func (s *mutantSum) add(m mutants.Mutant, walk int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines, s.walks = map[string]string{}, map[string][]int{}
	}
	open := ""
	if m.Open != "" {
		open = " (open: " + m.Open + ")"
	}
	if why == "" {
		s.lines[m.ID] = "not noticed" + open
		return
	}
	s.lines[m.ID] = fmt.Sprintf("noticed in walk %d: %s%s", walk, why, open)
	s.walks[m.Class] = append(s.walks[m.Class], walk)
}

func (s *mutantSum) log(t *testing.T, list []mutants.Mutant) {
	planted, open := map[string]int{}, map[string]int{}
	for _, m := range list {
		planted[m.Class]++
		if m.Open != "" && strings.HasPrefix(s.lines[m.ID], "not noticed") {
			open[m.Class]++
		}
		t.Logf("%s, class %s, %s: %s", m.ID, m.Class, m.Bug, s.lines[m.ID])
	}
	for _, class := range slices.Sorted(maps.Keys(planted)) {
		walks := slices.Sorted(slices.Values(s.walks[class]))
		if len(walks) > 0 {
			t.Logf("PROOF: walks: mutants of class %s: planted %d noticed %d (median walk %d, latest %d), open %d",
				class, planted[class], len(walks), walks[len(walks)/2], walks[len(walks)-1], open[class])
		}
	}
}
