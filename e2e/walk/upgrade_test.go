package walk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// The saved walks of 403b8aa, each interrupted right after a commit, as by a kill: see the README in the directory.
const oldVersion = "../upgrade/testdata/403b8aa"

// expand returns the content of a compressed file.
func expand(name string) ([]byte, error) {
	packed, err := os.ReadFile(filepath.Join(oldVersion, name))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return dec.DecodeAll(packed, nil)
}

// pastRows reads all rows of the old database. The file omits one payload, which no walk uses.
func pastRows(t *testing.T) []kv.Pair {
	t.Helper()
	data, err := expand("errand.db.zst")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "errand.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := boltkv.Open(path, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var rows []kv.Pair
	err = db.Scan(t.Context(), "", "", 0, func(p kv.Pair) error {
		rows = append(rows, kv.Pair{Key: p.Key, Value: bytes.Clone(p.Value)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// promise matches the beginning of a complaint by the model. The model did not observe the beginning of these walks, so
// its complaints do not count; all others do, such as a panic of a step.
var promise = regexp.MustCompile(`^(trust|approval|end|silence|moves|money|twice|VMs|look|jobs?|store|status|sleep|books|heard|sweep|polls?|runs?|threads|answers?|window|kept|told): `)

// earned matches errors in the log that are due to the saved state: the budget is used up, or a person deleted the
// branch.
var earned = regexp.MustCompile(`"class":"(budget|github)","message":"job failed permanently"`)

// TestTasksOfAnOlderVersionEnd starts the current errand on each saved walk of 403b8aa, and acts like helpful people
// until every task has ended: approve, answer, review, merge. Tasks that do not end this way are canceled.
func TestTasksOfAnOlderVersionEnd(t *testing.T) {
	t.Parallel()
	data, err := expand("worlds.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	var worlds []savedWorld
	if err := json.Unmarshal(data, &worlds); err != nil {
		t.Fatal(err)
	}
	rows := pastRows(t)
	var sum ends
	t.Run("world", func(t *testing.T) {
		for _, saved := range worlds {
			t.Run(fmt.Sprint(saved.Repo), func(t *testing.T) {
				t.Parallel()
				saved.end(t, rows, &sum)
			})
		}
	})
	sum.report(t, len(worlds))
}

// ends counts how tasks ended, by the phase that 403b8aa left them in.
type ends struct {
	mu     sync.Mutex
	worlds int
	tasks  int
	by     map[string]int
}

func (e *ends) add(before state.Phase, task *state.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == nil {
		e.by = map[string]int{}
	}
	e.tasks++
	how := string(task.Phase)
	if before != task.Phase && task.Phase == state.PhaseCancelled {
		how += ", " + task.End.Reason
	}
	e.by[fmt.Sprintf("%s → %s", before, how)]++
}

// played counts a walk.
func (e *ends) played() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.worlds++
}

func (e *ends) report(t *testing.T, want int) {
	t.Helper()
	if e.worlds < want {
		return // only some were selected, or one has failed
	}
	var lines []string
	for _, k := range sortedKeys(e.by) {
		lines = append(lines, fmt.Sprintf("%s: %d", k, e.by[k]))
	}
	t.Logf("%d tasks ended\n%s", e.tasks, strings.Join(lines, "\n"))
	for _, p := range state.Phases() {
		if p == state.PhasePRClosed {
			continue // newer than 403b8aa
		}
		if !strings.Contains("\n"+strings.Join(lines, "\n"), "\n"+string(p)+" → ") {
			t.Errorf("no task in phase %s has ended", p)
		}
	}
	fmt.Printf("PROOF: %d tasks of 403b8aa, in every phase, ended with the current code\n", e.tasks)
}

// end brings the tasks of one walk to their end.
func (s *savedWorld) end(t *testing.T, rows []kv.Pair, sum *ends) {
	t.Helper()
	var log bytes.Buffer
	w := &world{dice: chance{rand.New(rand.NewPCG(s.Seed, 6))}, lanes: state.Lanes(), met: func(string) {}, log: zerolog.New(&log).Level(zerolog.ErrorLevel)}
	w.fail = func(why string) {
		w.broke = ""
		if !promise.MatchString(why) {
			t.Fatalf("%s", why)
		}
	}
	w.assemble()
	w.model.blind = true
	s.revive(w)
	repo := fmt.Sprintf("(^|[/-])%d[/-]", s.Repo)
	mine := regexp.MustCompile(repo)
	for _, p := range rows {
		if mine.MatchString(p.Key) || p.Key == "meta/schema" {
			w.db.write(kv.Write{Key: p.Key, Value: bytes.Clone(p.Value)})
		}
	}
	w.openStore()
	before := map[state.TaskKey]state.Phase{}
	for _, task := range w.tasks() {
		before[task.Key] = task.Phase
	}
	if len(before) == 0 {
		t.Fatal("the walk has no task")
	}
	w.start()
	w.conclude()
	for _, task := range w.tasks() {
		if !task.Ended() {
			t.Errorf("task %s was %s, and is %s (step %q, waits for %v)\n%s", task.Key, before[task.Key], task.Phase, task.Step, task.Waiting, strings.Join(w.trail, "\n"))
			continue
		}
		if phase, old := before[task.Key]; old {
			sum.add(phase, task)
		}
	}
	sum.played()
	for line := range strings.Lines(log.String()) {
		if !earned.MatchString(line) {
			t.Errorf("an error in the log: %s%s", line, strings.Join(w.trail, "\n"))
		}
	}
}

// explain helps where a 👍 or retry does not: it requests work by a comment, approves by a command, raises the cap,
// repairs the settings, and closes blocking issues.
func (w *world) explain(n int) bool {
	ada := w.hub.people[0]
	if n == 8 && w.hub.config != "" {
		before := w.hub.branches[mainBranch]
		w.hub.config, w.hub.branches[mainBranch] = "", w.hub.newCommit(before)
		w.hub.onPush(mainBranch, ada, before, w.hub.branches[mainBranch])
	}
	if n == 8 && w.blocker != nil && !w.blocker.closed {
		return block(w)
	}
	for _, task := range w.tasks() {
		words := ""
		switch {
		case task.Phase == state.PhaseAwaitingAnswer && n%2 == 1:
			words = "SAY take that back and use another way"
		case task.Phase.AwaitsPlan() && n%10 == 9:
			words = "replan"
		case task.Phase.AwaitsApproval() && n%5 == 4:
			words = "approve"
		case task.Phase == state.PhaseFailed && n%7 == 6:
			words = "budget +5"
		}
		if words != "" {
			w.say(ada, w.hub.issues[task.Key.Issue], "@errand "+words)
			return true
		}
	}
	return false
}

// conclude acts like helpful people until no task is open, and finally cancels.
func (w *world) conclude() {
	open := func() (n int) {
		for _, task := range w.tasks() {
			if !task.Ended() {
				n++
			}
		}
		return n
	}
	for n := range 60 {
		if open() == 0 {
			return
		}
		if !w.explain(n) {
			actHelpfully(w)
		}
		w.pass(4 * time.Minute)
		w.pass(time.Hour)
	}
	for range 3 {
		for _, task := range w.tasks() {
			if !task.Ended() {
				w.say(w.hub.people[0], w.hub.issues[task.Key.Issue], "@errand cancel")
			}
		}
		w.pass(2 * time.Hour)
	}
}
