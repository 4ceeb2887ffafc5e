package upgrade_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// stored are the types of values in the store, by kind.
func stored() map[string]reflect.Type {
	return map[string]reflect.Type{
		"task": reflect.TypeFor[state.Task](), "job": reflect.TypeFor[state.Job](), "vm": reflect.TypeFor[vm.Row](), "upstream": reflect.TypeFor[state.ProviderState](),
		"money spent": reflect.TypeFor[state.Money](), "vm times": reflect.TypeFor[vm.Times](), "vm bill": reflect.TypeFor[vm.Bill](), "reservation": reflect.TypeFor[store.Reservation](),
		"operator's action": reflect.TypeFor[store.Action](),
	}
}

// examples are the paths in documents that have values, and their texts.
type examples map[string]map[string]bool

// see records the paths and values of a document. Empty lists and objects do not count as examples.
func (x examples) see(path string, v any, known shape) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if at := path + ".*"; known.has(at) {
				x.see(at, e, known)
			} else {
				x.see(path+"."+k, e, known)
			}
		}
	case []any:
		for _, e := range v {
			x.see(path+"[]", e, known)
		}
	default:
		if x[path] == nil {
			x[path] = map[string]bool{}
		}
		if s, ok := v.(string); ok {
			x[path][s] = true
		}
	}
}

// has reports whether a path, or one below it, has a value.
func (s shape) has(path string) bool {
	for p := range s {
		if rest, ok := strings.CutPrefix(p, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || rest[0] == ' ') {
			return true
		}
	}
	return false
}

func (x examples) seeValue(t *testing.T, path string, v any, known shape) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	decode(t, data, &doc)
	x.see(path, doc, known)
}

// collect records all values in the old database.
func collect(t *testing.T, known map[string]shape) examples {
	t.Helper()
	db, ctx := open(t), t.Context()
	s, err := store.Open(ctx, db, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := examples{}
	tasks, err := s.AllTasks(ctx, state.TaskKey{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		x.seeValue(t, "task", task, known["task"])
		jobs, err := s.Jobs(ctx, task.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			x.seeValue(t, "job", j, known["job"])
		}
	}
	rows, err := s.VMs.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		x.seeValue(t, "vm", row, known["vm"])
	}
	for prefix, name := range map[string]string{"upstream/": "upstream", "purse/": "money spent", "vmtimes": "vm times", "vmbill/": "vm bill"} {
		err := db.Scan(ctx, prefix, "", 0, func(p kv.Pair) error {
			var doc any
			if err := json.Unmarshal(p.Value, &doc); err != nil {
				return err
			}
			x.see(name, doc, known[name])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// TestOldDatabaseHasExamples checks that the old database has an example of every field that is stored today, and of
// every value of enumerated fields, so that reading it proves something. Newer fields, and fields without an example
// for another reason, are listed in testdata.
func TestOldDatabaseHasExamples(t *testing.T) {
	t.Parallel()
	known, types := map[string]shape{}, map[reflect.Type][]string{}
	for name, typ := range stored() {
		known[name] = shapeOf(name, typ, "json")
		for path, leaf := range known[name] {
			types[leaf] = append(types[leaf], path)
		}
	}
	x := collect(t, known)
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		for _, path := range slices.Sorted(maps.Keys(known[name])) {
			if x[path] == nil && !strings.HasSuffix(path, " (again)") {
				missing = append(missing, path)
			}
		}
	}
	var all values
	for typ, paths := range types {
		seen := map[string]bool{}
		for _, p := range paths {
			maps.Copy(seen, x[p])
		}
		for _, v := range all.of(t, typ) {
			if typ == reflect.TypeFor[event.Kind]() && !event.Kind(v).NeedsPermission() {
				continue // never stored
			}
			if !seen[v] && v != "" {
				missing = append(missing, slices.Min(paths)+" = "+v)
			}
		}
	}
	slices.Sort(missing)
	golden(t, "403b8aa/without-example.txt", missing, "the database of 403b8aa has no example of the lines marked with +. If they are newer than 403b8aa, run the test with -update")
}
