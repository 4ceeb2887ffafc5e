package realcli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// TestHeavyAnswers lets each real program write a long answer while its output is not read, as on a busy machine. Some
// of them exit without waiting for a reader; the answer must be complete nevertheless, in one run.
func TestHeavyAnswers(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	all := programs()
	all["gemini"] = real{}
	for name, p := range all {
		for size, n := range map[string]int{"39 KB": 39_000, "1 MB": 1_000_000, "6 MB": 6_000_000} {
			t.Run(name+"/"+size, func(t *testing.T) {
				t.Parallel()
				p, path := p, ""
				if name == "gemini" {
					path, p = geminiProgram(t)
				} else {
					path = program(t, name)
				}
				l := startLife(t, path, "turns.yaml", func(c *demo.Config) {
					c.Adapter, c.Model, c.Extra = p.adapter, p.model, "limits: {cost: 1000, cost_per_day: 1000, cost_per_month: 1000}"
					c.Files = map[string]string{"slug.go": "package slug\n", ".errand.yml": "plan: none\n"}
				})
				check(t, l.Model.SetScript(longAnswer(n)))
				issue := l.assign("Say much", "At length.")
				check(t, l.Model.Waiting(t.Context(), "gate"))
				resume := l.pauseSupervisor(issue)
				l.Model.Release("gate")
				resume()
				l.wantAnswer(issue, n)
			})
		}
	}
}

// longAnswer changes the code and answers with about n bytes in unique lines.
func longAnswer(n int) simmodel.Script {
	var b strings.Builder
	for hash := sha256.Sum256(nil); b.Len() < n; b.WriteByte('\n') {
		for range 31 {
			hash = sha256.Sum256(hash[:])
			b.WriteString(hex.EncodeToString(hash[:]))
		}
	}
	b.WriteString(lastWords + "\n\n```errand\n{\"outcome\":\"done\",\"title\":\"Much was said\",\"summary\":\"It was said.\"}\n```\n")
	return simmodel.Script{Rules: []simmodel.Rule{{Name: "implement", Step: "implement", Turns: []simmodel.Turn{
		{Bash: []string{"echo '// more' >> slug.go && git add -A && git commit -qm 'Say more'"}},
		{Text: b.String(), Wait: "gate"},
	}}}}
}

// wantAnswer checks that an answer of n bytes arrived completely in one run. If a program writes it on a single line,
// the runner truncates it to its limit, and the transcript states how much was removed.
func (l *life) wantAnswer(issue, n int) {
	l.t.Helper()
	task := l.reachPhase(issue, "the run's end", func(t *state.Task) bool { return len(t.Runs) > 0 })
	run := task.Runs[0]
	log, err := os.ReadFile(filepath.Join(l.dir, "data", "transcripts", run.ID+".jsonl"))
	check(l.t, err)
	if n > runner.DefaultMaxLine {
		if !bytes.Contains(log, []byte(lastWords)) && !regexp.MustCompile(`"cut":[1-9][0-9]{6}`).Match(log) {
			l.t.Errorf("the run ended as %s: %s; its transcript of %d bytes has neither the answer's end nor the length of the truncated part", run.Status, run.Message, len(log))
		}
		return
	}
	if run.Status != "ok" || !bytes.Contains(log, []byte(lastWords)) {
		l.t.Errorf("the run ended as %s: %s; its transcript has %d bytes", run.Status, run.Message, len(log))
	}
	task = l.until(issue, "the pull request", func(t *state.Task) bool { return t.Phase == state.PhasePROpen })
	pull, err := l.GitHub.As(demo.Maintainer).Issue(demo.Full, task.PR.Number)
	check(l.t, err)
	if len(task.Runs) != 1 || len(l.Model.Requests()) != 2 || pull.Title != "Much was said" {
		l.t.Errorf("got %d runs with %d requests; pull request %q", len(task.Runs), len(l.Model.Requests()), pull.Title)
	}
}

// lastWords is the end of an answer, before its outcome.
const lastWords = "THE-LAST-WORDS"

// pauseSupervisor stops the process that reads the output of a task's run. Resume continues it once the program has
// exited.
func (l *life) pauseSupervisor(issue int) (resume func()) {
	l.t.Helper()
	run := l.until(issue, "the run", func(t *state.Task) bool { return t.Run != nil }).Run.ID
	var supervisor process
	all := processes(l.t)
	for _, p := range all {
		if strings.Contains(p.args, " supervise ") && strings.HasSuffix(p.args, " --run "+run) && l.ownsProcess(all, p) {
			supervisor = p
		}
	}
	if supervisor.pid == 0 {
		l.t.Fatalf("found no supervisor of run %s", run)
	}
	check(l.t, syscall.Kill(supervisor.pid, syscall.SIGSTOP))
	return func() {
		l.t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(patience); hasLivingChild(processes(l.t), supervisor.pid); <-tick.C {
			if time.Now().After(end) {
				l.t.Error("the program does not exit while its output is not read")
				break
			}
		}
		check(l.t, syscall.Kill(supervisor.pid, syscall.SIGCONT))
	}
}

// ownsProcess reports whether a process belongs to a sandbox of this world: one of its ancestors has the world's
// directory in its arguments.
func (l *life) ownsProcess(all map[int]process, p process) bool {
	for ; p.pid > 1; p = all[p.parent] {
		if strings.Contains(p.args, l.dir+"/") {
			return true
		}
	}
	return false
}

// process is the information in /proc about a process.
type process struct {
	pid, parent int
	ended       bool
	args        string // separated by spaces
}

func processes(t *testing.T) map[int]process {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	check(t, err)
	all := map[int]process{}
	for _, dir := range dirs {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat")) // the process may have ended
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) < 2 {
			continue
		}
		p := process{ended: fields[0] == "Z", args: strings.ReplaceAll(strings.TrimSuffix(string(args), "\x00"), "\x00", " ")}
		p.pid, err = strconv.Atoi(filepath.Base(dir))
		check(t, err)
		p.parent, err = strconv.Atoi(fields[1])
		check(t, err)
		all[p.pid] = p
	}
	return all
}

func hasLivingChild(all map[int]process, parent int) bool {
	for _, p := range all {
		if p.parent == parent && !p.ended {
			return true
		}
	}
	return false
}
