package walk

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// run is a run of an agent, or of the repository's commands, on a VM.
type run struct {
	spec    runner.Spec
	on      *walkVM
	step    string
	started time.Time
	ends    time.Time
	lines   []runlog.Line
	exit    *runlog.Exit
	mood    string
	budget  int64 // in millionths of a dollar, as given to it
	cost    int64
	life    int    // of the task
	token   string // of its plan
	asked   bool   // people, through errand's tools
}

const (
	usd    = 1_000_000
	answer = usd / 2 // the highest cost of one model answer
)

// moods are the ways in which a run may fail. The walk arms them one at a time.
func moods() []string {
	return []string{"question", "blocked", "report", "fixed", "no_op", "turns", "crash", "stall", "limit", "auth", "dear", "no_session", "nothing", "protected", "long", "red", "garbled"}
}

// newRun begins a run.
func (w *world) newRun(o *walkVM, spec runner.Spec) *run {
	r := &run{spec: spec, on: o, step: stepOf(spec), started: w.now, cost: usd / 5, mood: w.mood}
	w.mood = ""
	w.machines.runs++
	if r.step == "check" {
		r.cost = 0
	}
	if at := slices.Index(spec.Argv, "--max-budget-usd"); at >= 0 {
		f, err := strconv.ParseFloat(spec.Argv[at+1], 64)
		if err != nil {
			w.fatalf("budget of run %s: %v", spec.ID, err)
		}
		r.budget = int64(f * usd)
		r.cost = min(r.cost, r.budget+answer)
	}
	took := 2 * time.Minute
	switch r.mood {
	case "question":
		if w.machines.runs%2 == 0 { // otherwise it asks in its last answer
			w.ask(r)
		}
	case "long":
		took = 25 * time.Minute
	case "dear":
		if r.step != "check" {
			r.cost = r.budget + answer
		}
	}
	r.ends = w.now.Add(min(took, spec.Duration))
	w.hit("mood " + r.mood)
	return r
}

// session returns the ID of the run's session.
func (r *run) session() string {
	for _, flag := range []string{"--resume", "--session-id"} {
		if at := slices.Index(r.spec.Argv, flag); at >= 0 {
			return r.spec.Argv[at+1]
		}
	}
	return ""
}

func (r *run) say(w *world, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		w.fatalf("encode a line: %v", err)
	}
	r.lines = append(r.lines, runlog.Line{Seq: int64(len(r.lines) + 1), Time: w.now, Stream: runlog.StreamStdout, Text: string(data)})
}

// endRun ends a run: normally, by its mood, or because it was stopped.
func (w *world) endRun(r *run, cause runlog.Cause) {
	x := &runlog.Exit{Cause: cause, StartedAt: r.started, EndedAt: w.now}
	cost := r.cost
	if cause == runlog.CauseStopped {
		cost /= 2
	}
	switch {
	case r.step == "check":
		w.endChecks(r)
	default:
		r.say(w, map[string]any{"type": "system", "subtype": "init", "session_id": r.session(), "model": "m"})
		if r.mood == "stall" && cause == runlog.CauseExited {
			x.Cause = runlog.CauseStalled
		}
		res, code := r.result(w)
		res["total_cost_usd"] = float64(cost) / usd
		r.say(w, res)
		x.Code = code
	}
	w.meter(r, cost)
	x.LastSeq = int64(len(r.lines))
	r.exit, w.errand.followed = x, w.now
}

func (w *world) spend(r *run, cost int64) {
	w.machines.spends += cost
	w.model.spent(r, cost)
}

// meter books the cost of a run, as the gateway does. While errand is down, no model answers.
func (w *world) meter(r *run, cost int64) {
	if !w.errand.up() || cost == 0 {
		return
	}
	key, err := state.ParseTaskKey(r.on.owner)
	if err == nil && !w.plant.freeMoney {
		_, err = w.kept(event.Event{Task: key, Run: r.spec.ID, Payload: event.ModelCalled{Money: state.Money{MicroUSD: cost}}})
	}
	switch {
	case err == nil:
		w.spend(r, cost)
	case w.errand.up():
		w.fatalf("book the cost of run %s: %v", r.spec.ID, err)
	}
}

// resumed reports whether the run continues a session.
func (r *run) resumed() bool { return slices.Contains(r.spec.Argv, "--resume") }

// result returns the agent's last line and its exit code.
func (r *run) result(w *world) (map[string]any, int) {
	out := map[string]any{"type": "result", "subtype": "success", "is_error": false, "num_turns": 3, "session_id": r.session(), "stop_reason": "end_turn", "terminal_reason": "completed"}
	failed := func(words string, http int) {
		out["is_error"], out["result"], out["api_error_status"] = true, words, http
	}
	switch r.mood {
	case "no_op":
		out["num_turns"] = 0
	case "turns":
		out["subtype"], out["is_error"] = "error_max_turns", true
	case "crash":
		return out, 1
	case "limit":
		failed("Too many requests", 429)
	case "auth":
		failed("Who are you?", 401)
	case "dear":
		out["subtype"], out["is_error"] = "error_max_budget_usd", true
	case "no_session":
		if r.resumed() {
			out["errors"], out["is_error"] = []string{"No conversation found with session ID: x"}, true
		}
	}
	if out["is_error"] == false && r.mood != "no_op" {
		out["result"] = r.answer(w)
		if r.repairs() {
			out["structured_output"] = json.RawMessage(r.on.garbled)
		}
	}
	return out, 0
}

var (
	feedbackID = regexp.MustCompile(`(?m)^### "?((?:comment|thread|review|edit|vouched|with|refusal|conflict|check):[^"\s]+?)"?: `)
	textToken  = regexp.MustCompile(`text-\d+`)
)

// repairs reports whether the run only repeats an unreadable closing block.
func (r *run) repairs() bool {
	return strings.HasPrefix(r.spec.Stdin[strings.Index(r.spec.Stdin, "\n\n")+2:], "Your last answer was stored")
}

// considers reports whether the run considers comments on a plan that waits for approval.
func (r *run) considers() bool {
	return strings.Contains(r.spec.Stdin, "People commented on the last revision of the plan")
}

// answer returns the agent's final answer, after its work.
func (r *run) answer(w *world) string {
	if r.repairs() {
		return r.on.garbled
	}
	block := map[string]any{"summary": "It is done."}
	words := "All is as it should be."
	planning := r.step == "preliminary_plan" || r.step == "plan"
	switch {
	case r.asked:
		block["outcome"] = "done" // its earlier answer stays valid
	case r.mood == "question" || r.mood == "blocked":
		block["outcome"], block["question"] = r.mood, fmt.Sprintf("Which one of the %d?", w.machines.runs)
	case planning && r.mood == "report":
		block["outcome"] = "report"
	case planning && r.mood == "fixed":
		block["outcome"] = "already_fixed"
	case strings.Contains(r.spec.Stdin, "After both, the question stays open.") && w.machines.runs%3 > 0:
		block["outcome"] = []string{"", "answered", "unchanged"}[w.machines.runs%3]
		w.hit("question stays open")
	case r.considers() && w.machines.runs%3 > 0:
		block["outcome"] = []string{"", "answered", "unchanged"}[w.machines.runs%3]
		w.hit("considered " + fmt.Sprint(block["outcome"]))
	case planning:
		w.plans++
		r.token = fmt.Sprintf("PLAN-%d", w.plans)
		words = r.token + ": turn it round."
		block["outcome"] = "build"
		w.model.planned(r)
	default:
		block["outcome"] = "done"
		var threads []map[string]any
		for _, m := range feedbackID.FindAllStringSubmatch(r.spec.Stdin, -1) {
			threads = append(threads, map[string]any{"id": m[1], "answer": "Done as you said."})
		}
		block["threads"] = threads
		if r.mood != "nothing" {
			r.commit(w)
		}
	}
	data, err := json.Marshal(block)
	if err != nil {
		w.fatalf("encode an outcome: %v", err)
	}
	if r.mood == "garbled" {
		r.on.garbled = string(data)
		data = data[:len(data)-1]
	}
	return words + "\n\n```errand\n" + string(data) + "\n```\n"
}

// commit makes the agent's work: one commit.
func (r *run) commit(w *world) {
	path := fmt.Sprintf("src/f%d.go", w.machines.runs)
	if r.mood == "protected" {
		path = ".github/workflows/ci.yml"
	}
	var merged []string
	if m := r.merges(); m != "" {
		r.on.work = slices.Clone(r.on.work)
		for i := range r.on.work { // an older merge is made again with the newer commit
			r.on.work[i].Parents = nil
		}
		merged = []string{m}
	}
	blob := w.hub.sha()
	r.on.blobs[blob] = []byte("package src\n")
	r.on.work = append(slices.Clone(r.on.work), changeset.Commit{
		ID: w.localID(), Tree: fmt.Sprintf("%08x%032x", w.hub.id(), 0xabc), Message: "Work on it", Parents: merged,
		Changes: []changeset.Change{{Path: path, Mode: changeset.ModeFile, Blob: blob}},
	})
	w.works.commits(r, r.on.work[len(r.on.work)-1])
	if r.mood != "protected" { // an agent that is informed of a refusal reverts the change
		r.on.work = slices.DeleteFunc(r.on.work, func(c changeset.Commit) bool {
			back := strings.HasPrefix(c.Changes[0].Path, ".github/")
			if back {
				w.works.given[c.Tree] = "an agent took it back"
			}
			return back
		})
	}
}

// endChecks reports the results of the repository's commands.
func (w *world) endChecks(r *run) {
	code := 0
	if r.mood == "red" {
		code = 1
	}
	r.say(w, work.CheckResult{Type: work.TypeCheckResult, Name: "test", Code: code})
	r.say(w, work.ChecksDone{Type: work.TypeChecksDone, OK: code == 0})
}
