package machine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// fill sets every field of a value, with texts that say where they are.
func fill(v reflect.Value, path string, depth int) {
	if depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("secret")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path+"[]", depth+1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, path, depth+1)
		fill(value, path, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), path+"."+v.Type().Field(i).Name, depth+1)
		}
	}
}

// texts returns the paths of a value's texts.
func texts(v any, path string) (list []string) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "secret") {
			list = append(list, path)
		}
	case []any:
		for _, e := range v {
			list = append(list, texts(e, path+"[]")...)
		}
	case map[string]any:
		for k, e := range v {
			list = append(list, texts(k, path+" (a key)")...)
			list = append(list, texts(e, strings.TrimPrefix(path+"."+k, "."))...)
		}
	}
	return list
}

// filled returns an ended task with a text in each field.
func filled() *state.Task {
	t := &state.Task{}
	fill(reflect.ValueOf(t).Elem(), "", 0)
	t.Phase, t.VM, t.Run, t.End.Saving, t.PR.State = state.PhaseCancelled, nil, nil, false, state.PROpen
	return t
}

// TestPurgeKeepsOnlyWhatIsListed: of a task in which every field has a text, only the listed texts stay: names of the repository, VMs and
// models, IDs, hashes, and values of closed lists.
func TestPurgeKeepsOnlyWhatIsListed(t *testing.T) {
	t.Parallel()
	stays := regexp.MustCompile(`^(repo\.(owner|name|default_branch|url)|trigger\.via|history\[\]\.phase|end\.class|money\.unpriced|names\[\]|seen\[\]|passed\[\]|` +
		`pr\.(node|url)|replaced\[\]\.url|status\.(node|url)|runs\[\]\.(id|kind|state|status|class|vm|adapter|model|money\.unpriced)|` +
		`vms\[\]\.(name|provider|kind|currency|carries\[\]|why))$`)
	task := filled()
	ch := machine.Next(task, event.Event{
		Task: task.Key, Now: time.Now(), By: state.Person{Operator: true}, Permission: state.PermissionWrite, Payload: event.Purged{},
	}, machine.DefaultPolicy())
	if ch.Task == nil || ch.Task.Purged.IsZero() || !ch.DropTexts {
		t.Fatalf("got change %+v, want a purged task", ch)
	}
	data, err := json.Marshal(ch.Task)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, path := range texts(all, "") {
		if !stays.MatchString(path) {
			t.Errorf("a purged task keeps the text %s", path)
		}
	}
	if before, _ := json.Marshal(task); len(texts(jsonOf(t, before), "")) < 150 {
		t.Errorf("got %d texts in the task before: this test shows nothing", len(texts(jsonOf(t, before), "")))
	}
	for what, same := range map[string]bool{
		"the costs": reflect.DeepEqual(ch.Task.Money, task.Money), "the number of runs": ch.Task.RunSeq == task.RunSeq,
		"the VMs": reflect.DeepEqual(ch.Task.VMs, task.VMs), "the IDs": slices.Equal(ch.Task.SeenIDs, task.SeenIDs),
		"the pull request's number": ch.Task.PR.Number == task.PR.Number, "the phase": ch.Task.Phase == task.Phase,
		"the hash of its plan": slices.Contains(ch.Task.UsedHashes, task.Plans[0].Short()), "the run's tokens": ch.Task.Runs[0].Money == task.Runs[0].Money,
	} {
		if !same {
			t.Errorf("%s changed", what)
		}
	}
	if len(ch.Jobs) != 1 || ch.Jobs[0].Kind != state.JobForget {
		t.Errorf("got jobs %+v, want one that deletes the saved work", ch.Jobs)
	}
}

func jsonOf(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestPurgeIsRefusedWhileWorkIsUnderWay: a task that has not ended, or that is still being ended, keeps its texts.
func TestPurgeIsRefusedWhileWorkIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*state.Task, *event.Event){
		"open":               func(t *state.Task, _ *event.Event) { t.Phase = state.PhaseImplementing },
		"failed":             func(t *state.Task, _ *event.Event) { t.Phase = state.PhaseFailed },
		"its work is saved":  func(t *state.Task, _ *event.Event) { t.End.Saving = true },
		"it has a VM":        func(t *state.Task, _ *event.Event) { t.VM = &state.VM{Name: "vm"} },
		"its run is ending":  func(t *state.Task, _ *event.Event) { t.Run = &state.Run{ID: "7-7-1"} },
		"a job is under way": func(_ *state.Task, e *event.Event) { e.Busy = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := filled()
			e := event.Event{Task: task.Key, Now: time.Now(), By: state.Person{Operator: true}, Permission: state.PermissionWrite, Payload: event.Purged{}}
			change(task, &e)
			if ch := machine.Next(task, e, machine.DefaultPolicy()); ch.Task != nil || ch.DropTexts {
				t.Errorf("got %s, want no change", ch.Note)
			}
		})
	}
}

// TestPurgedTaskIsNotContinued: retry, and a trigger, find nothing to continue. A trigger and `restart` by a person begin the task anew, and
// close its pull request; the operator's `restart` has no text to begin with.
func TestPurgedTaskIsNotContinued(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	ada := state.Person{ID: 1, Login: "ada"}
	issue := &state.Issue{Title: "Another title", Body: "Another text", Author: ada}
	comment := func(verb state.Verb) event.Event {
		return event.Event{ID: "comment:1", By: ada, Permission: state.PermissionWrite, At: now, Payload: event.Commented{
			Comment: &state.Comment{ID: 1, Mention: true}, Orders: []state.Order{{Verb: verb}}, Issue: issue,
		}}
	}
	for name, tc := range map[string]struct {
		e      event.Event
		begins bool
	}{
		"retry":                   {comment(state.VerbRetry), false},
		"retry by the operator":   {event.OperatorCommand(state.TaskKey{}, "x", state.Order{Verb: state.VerbRetry}, false), false},
		"restart by the operator": {event.OperatorCommand(state.TaskKey{}, "x", state.Order{Verb: state.VerbRestart}, false), false},
		"restart on a page":       {event.PersonCommand(state.TaskKey{}, "x", ada, state.Order{Verb: state.VerbRestart}, false), false},
		"restart":                 {comment(state.VerbRestart), true},
		"an assignment":           {event.Event{ID: "assigned", By: ada, Permission: state.PermissionWrite, At: now, Via: state.TriggerAssigned, Payload: event.Triggered{Issue: issue}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := filled()
			task = machine.Next(task, event.Event{Task: task.Key, Now: now, Payload: event.Purged{}}, machine.DefaultPolicy()).Task
			tc.e.Task, tc.e.Now = task.Key, now.Add(time.Second)
			ch := machine.Next(task, tc.e, machine.DefaultPolicy())
			begun := ch.Task != nil && !ch.Task.Ended()
			if begun != tc.begins {
				t.Fatalf("got %q, phase %v; want a new life: %t", ch.Note, ch.Task, tc.begins)
			}
			if !begun {
				return
			}
			if !ch.Task.Purged.IsZero() || ch.Task.Frozen.Title != issue.Title || ch.Task.PR != nil || ch.Task.Gen != task.Gen+1 {
				t.Errorf("got purged %v, title %q, pull request %v, life %d", ch.Task.Purged, ch.Task.Frozen.Title, ch.Task.PR, ch.Task.Gen)
			}
			closes := func(j state.Job) bool { return j.Kind == state.JobClosePR && j.Args.Number == task.PR.Number }
			if !slices.ContainsFunc(ch.Jobs, closes) {
				t.Error("the pull request of the life before stays open")
			}
		})
	}
}

// TestPurgeDropsJobsWithTexts: comments that were not posted are dropped with the texts that they have; deletions stay.
func TestPurgeDropsJobsWithTexts(t *testing.T) {
	t.Parallel()
	ch := machine.Change{DropTexts: true}
	for kind, dropped := range map[state.JobKind]bool{
		state.JobPost: true, state.JobStatus: true, state.JobReact: true, state.JobDue: true, state.JobKind("new"): true,
		state.JobRelease: false, state.JobForget: false, state.JobMinimize: false, state.JobClosePR: false,
	} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			t.Parallel()
			if got := ch.Drops(&state.Job{Kind: kind}); got != dropped {
				t.Errorf("dropped: got %t, want %t", got, dropped)
			}
		})
	}
	for due, dropped := range map[state.DueKind]bool{state.DueDuplicate: false, state.DueForget: false, state.DueRemind: true, state.DueComments: true} {
		if got := ch.Drops(&state.Job{Kind: state.JobDue, Args: state.JobArgs{Due: due}}); got != dropped {
			t.Errorf("due %s, dropped: got %t, want %t", due, got, dropped)
		}
	}
}

// TestPurgeKeepsPRThatMayBeOpen: a pull request whose opening was not confirmed is closed by the next life, also after a purge, and after two.
func TestPurgeKeepsPRThatMayBeOpen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	task := filled()
	task.PR, task.Replaced, task.Branch = nil, nil, state.Branch{Name: "errand/1-bug", Head: "h1"}
	for range 2 {
		task = machine.Next(task, event.Event{Task: task.Key, Now: now, Payload: event.Purged{}}, machine.DefaultPolicy()).Task
		if len(task.Replaced) != 1 || task.Branch.Name != "" {
			t.Fatalf("got replaced pull requests %+v, branch %+v; want only the branch's", task.Replaced, task.Branch)
		}
	}
	ada := state.Person{ID: 1, Login: "ada"}
	ch := machine.Next(task, event.Event{
		Task: task.Key, Now: now.Add(time.Second), ID: "assigned", By: ada, Permission: state.PermissionWrite, At: now, Via: state.TriggerAssigned,
		Payload: event.Triggered{Issue: &state.Issue{Title: "t", Body: "b", Author: ada}},
	}, machine.DefaultPolicy())
	closes := func(j state.Job) bool { return j.Kind == state.JobClosePR && j.Args.Branch == "errand/1-bug" }
	if !slices.ContainsFunc(ch.Jobs, closes) {
		t.Errorf("got jobs %+v, want one that closes the pull request of the branch", ch.Jobs)
	}
}
