package leak_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
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

	mutantSeeds = 100 // most seeds for a mutant
	openSeeds   = 20  // for one that is not expected to be detected
	noneSeeds   = 10  // without a mutant; TestHeavyNothingLeaks plays more
)

// TestMutantsFitTheSource checks that the table matches the source, also in runs without mutants.
func TestMutantsFitTheSource(t *testing.T) {
	t.Parallel()
	table := mutants.Load(t, mutantsFile, top)
	for _, m := range table.Mutants {
		if m.Class != "2" || m.Acts != "" {
			t.Errorf("%s: want class 2 and no acts", m.ID)
		}
	}
	t.Logf("%d mutants in %d files", len(table.Mutants), len(table.Changed))
}

// TestHeavyMutantsAreNoticed plays each mutant until a seed complains, or by the test that its entry names.
func TestHeavyMutantsAreNoticed(t *testing.T) {
	t.Parallel()
	if seeds := os.Getenv(mutants.Env + "_SEEDS"); seeds != "" { // this binary contains the mutants
		playMutant(t, seeds)
		return
	}
	heavytest.Mark(t)
	table := mutants.Load(t, mutantsFile, top)
	bin := table.Build(t)
	var mu sync.Mutex
	lines, seeds := map[string]string{}, []int{}
	t.Cleanup(func() {
		noticed := 0
		for _, m := range table.Mutants {
			if lines[m.ID] == "" { // excluded by -run
				continue
			}
			t.Logf("%s, %s: %s", m.ID, m.Bug, lines[m.ID])
			if strings.HasPrefix(lines[m.ID], "noticed") {
				noticed++
			}
		}
		slices.Sort(seeds)
		t.Logf("PROOF: leaks: mutants of class 2: planted %d noticed %d, in seeds up to the %dth", len(lines), noticed, slices.Max(append(seeds, 0)))
	})
	t.Run("none", func(t *testing.T) { // without a mutant no seed may complain
		t.Parallel()
		if seed, why := runSeeds(t, bin, "none", noneSeeds); why != "" {
			t.Errorf("seed %d without a mutant complains: %s", seed-1, why)
		}
	})
	for _, m := range table.Mutants {
		t.Run(m.ID, func(t *testing.T) {
			t.Parallel()
			seed, said := 0, ""
			switch why := ""; {
			case m.Test != "":
				said = runTest(t, bin, m)
			case m.Open != "":
				seed, why = runSeeds(t, bin, m.ID, openSeeds)
				said = "not noticed (open: " + m.Open + ") " + why
			default:
				seed, why = runSeeds(t, bin, m.ID, mutantSeeds)
				if said = "not noticed"; why != "" {
					said = fmt.Sprintf("noticed in seed %d: %s", seed-1, why)
				}
				if about, _, _ := strings.Cut(why, ":"); why == "" || !slices.ContainsFunc(m.Want, func(w string) bool { return strings.HasPrefix(about, w) }) {
					t.Errorf("%s: seed %d of %d complains: %q, want a complaint about %v", m.Bug, seed-1, mutantSeeds, why, m.Want)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			lines[m.ID], seeds = said, append(seeds, seed)
		})
	}
}

// playMutant plays seeds until one complains, and prints its number and complaint for runSeeds.
func playMutant(t *testing.T, seeds string) {
	t.Helper()
	most, err := strconv.Atoi(seeds)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range most {
		if _, problems := play(t, uint64(seed), configureOddWorld(seed)); len(problems) > 0 {
			fmt.Printf("noticed %d %s\n", seed+1, problems[0])
			return
		}
	}
	fmt.Println("unnoticed")
}

var mutantSaid = regexp.MustCompile(`(?m)^(?:noticed (\d+) (.*)|unnoticed)$`)

// runSeeds runs the binary with one mutant, and returns the first seed that complained, counted from 1, and its
// complaint.
func runSeeds(t *testing.T, bin, id string, most int) (seed int, why string) {
	t.Helper()
	out, err := run(t.Context(), bin, "TestHeavyMutantsAreNoticed", mutants.Env+"="+id, mutants.Env+"_SEEDS="+strconv.Itoa(most))
	found := mutantSaid.FindStringSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("play %s: %v\n%s", id, err, out)
	}
	if found[1] == "" {
		return 0, ""
	}
	if seed, err = strconv.Atoi(found[1]); err != nil {
		t.Fatal(err)
	}
	return seed, found[2]
}

// runTest runs the test in a mutant's entry and expects it to fail.
func runTest(t *testing.T, bin string, m mutants.Mutant) (said string) {
	t.Helper()
	if out, err := run(t.Context(), bin, m.Test, mutants.Env+"=none"); err != nil {
		t.Fatalf("without a mutant: %v\n%s", err, out)
	}
	if out, err := run(t.Context(), bin, m.Test, mutants.Env+"="+m.ID); err == nil || !strings.Contains(out, "--- FAIL: "+m.Test) {
		t.Errorf("%s: %s does not detect the mutant\n%s", m.Bug, m.Test, out)
		return "not noticed"
	}
	return "noticed by " + m.Test
}

func run(ctx context.Context, bin, test string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, bin, "-test.run=^"+test+"$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
