package walk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	mutantEnv   = "ERRAND_WALK_MUTANT" // names the mutant that a test binary is to play, and says how many walks
	mutantWalks = 1000                 // at most, for a mutant
	openWalks   = 25                   // for one that is not expected to be noticed
	noneWalks   = 250                  // without any
)

// buildMutants builds one test binary with all mutants. Each stays out of the way until the environment names it.
func buildMutants(t *testing.T, changed map[string]string) string {
	t.Helper()
	dir, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	put := func(path, text string) {
		real, err := filepath.Abs(filepath.Join(top, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		replace[real] = filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(replace[real], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(changed)) {
		put(file, changed[file])
		clause, err := parser.ParseFile(token.NewFileSet(), file, changed[file], parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		put(filepath.ToSlash(filepath.Dir(file))+"/zz_mutant.go", "package "+clause.Name.Name+"\n\nimport \"os\"\n\nvar played = os.Getenv(\""+mutantEnv+"\")\n\n"+
			"func mutant(id string) bool { return played == id }\n")
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "mutants.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the mutants: %v\n%s", err, out)
	}
	return bin
}

// TestMutantsAreNoticed plays each mutant until a walk complains.
func TestMutantsAreNoticed(t *testing.T) {
	t.Parallel()
	if id := os.Getenv(mutantEnv); id != "" { // this is the binary with the mutants
		playMutant(t, id)
		return
	}
	list, changed := mutants(t)
	if !isFull() {
		t.Skip("played with ERRAND_TEST_FULL=1")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("mutants are built by the go command, which is not here")
	}
	bin, sum := buildMutants(t, changed), &mutantSum{}
	t.Cleanup(func() { sum.log(t, list) })
	for _, acts := range actsOf(list) { // the walks themselves complain of nothing
		t.Run("none "+acts, func(t *testing.T) {
			t.Parallel()
			if walk, why := runMutant(t, bin, mutant{id: "none", acts: acts}); why != "" {
				t.Errorf("without a mutant walk %d complains: %s", walk, why)
			}
		})
	}
	for _, m := range list {
		t.Run(m.id, func(t *testing.T) {
			t.Parallel()
			walk, why := runMutant(t, bin, m)
			if why == "" && m.open == "" {
				t.Errorf("%s: no walk of %d noticed it", m.bug, mutantWalks)
			}
			if about, _, _ := strings.Cut(why, ":"); why != "" && m.open == "" && !slices.Contains(m.want, about) {
				t.Errorf("%s: walk %d noticed it as %q, want a broken promise about one of %v", m.bug, walk, why, m.want)
			}
			sum.add(m, walk, why)
		})
	}
}

// actsOf lists what the walks of a table's mutants do more often.
func actsOf(list []mutant) []string {
	acts := []string{""}
	for _, m := range list {
		acts = append(acts, m.acts)
	}
	slices.Sort(acts)
	return slices.Compact(acts)
}

// playMutant plays walks until one complains and prints which and why, for runMutant.
func playMutant(t *testing.T, id string) {
	t.Helper()
	walks, err := strconv.Atoi(os.Getenv(mutantEnv + "_WALKS"))
	if err != nil {
		t.Fatal(err)
	}
	table := more(os.Getenv(mutantEnv + "_ACTS"))
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

// ordinaryWalk is a walk as TestWalks plays them, without rapid. It returns how it complains, or nothing.
func ordinaryWalk(table []act, seed uint64) (why string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case broken:
			why = r.why
		case runtime.Error: // the product's own
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

// runMutant runs the binary with one mutant, and returns the first walk that complained, counted from 1, and how.
func runMutant(t *testing.T, bin string, m mutant) (walk int, why string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "-test.run=^TestMutantsAreNoticed$", "-test.timeout=10m")
	walks := mutantWalks
	switch {
	case m.id == "none":
		walks = noneWalks
	case m.open != "":
		walks = openWalks
	}
	cmd.Env = append(os.Environ(), mutantEnv+"="+m.id, mutantEnv+"_ACTS="+m.acts, mutantEnv+"_WALKS="+strconv.Itoa(walks))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	found := mutantSaid.FindStringSubmatch(out.String())
	if err != nil || found == nil {
		t.Fatalf("play %s: %v\n%s", m.id, err, out.Bytes()[max(0, out.Len()-4000):])
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

// mutantSum is what became of all mutants.
type mutantSum struct {
	mu    sync.Mutex
	lines map[string]string
	walks map[string][]int // of those that were noticed, by class
}

func (s *mutantSum) add(m mutant, walk int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines, s.walks = map[string]string{}, map[string][]int{}
	}
	open := ""
	if m.open != "" {
		open = " (open: " + m.open + ")"
	}
	if why == "" {
		s.lines[m.id] = "not noticed" + open
		return
	}
	s.lines[m.id] = fmt.Sprintf("noticed in walk %d: %s%s", walk, why, open)
	s.walks[m.class] = append(s.walks[m.class], walk)
}

func (s *mutantSum) log(t *testing.T, list []mutant) {
	planted, open := map[string]int{}, map[string]int{}
	for _, m := range list {
		planted[m.class]++
		if m.open != "" && strings.HasPrefix(s.lines[m.id], "not noticed") {
			open[m.class]++
		}
		t.Logf("%s, class %s, %s: %s", m.id, m.class, m.bug, s.lines[m.id])
	}
	for _, class := range slices.Sorted(maps.Keys(planted)) {
		walks := slices.Sorted(slices.Values(s.walks[class]))
		if len(walks) > 0 {
			t.Logf("PROOF: walks: mutants of class %s: planted %d noticed %d (median walk %d, latest %d), open %d",
				class, planted[class], len(walks), walks[len(walks)/2], walks[len(walks)-1], open[class])
		}
	}
}
