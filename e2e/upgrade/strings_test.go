package upgrade_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/bake"
	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/tetherd"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/setup"
	"github.com/errand-bot/errand/internal/shellrules"
	"github.com/errand-bot/errand/state"
)

// wired are the types that are exchanged with VMs and agents, written to files, or shown to programs, by kind.
func wired() map[string]reflect.Type {
	return map[string]reflect.Type{
		"runner: start": reflect.TypeFor[runner.Spec](), "runner: started": reflect.TypeFor[runner.Started](), "runner: status": reflect.TypeFor[runner.Status](),
		"runner: tether": reflect.TypeFor[tetherd.Status](), "runner: shell rules": reflect.TypeFor[shellrules.Rules](),
		"runner: prepare": reflect.TypeFor[work.PrepareSpec](), "runner: prepared": reflect.TypeFor[work.Place](), "runner: reset": reflect.TypeFor[work.ResetSpec](),
		"runner: rebase": reflect.TypeFor[work.RebaseSpec](), "runner: rebased": reflect.TypeFor[work.Rebased](), "runner: collect": reflect.TypeFor[work.CollectSpec](),
		"runner: pulled": reflect.TypeFor[work.Pulled](), "runner: lend": reflect.TypeFor[work.LendSpec](), "runner: lent": reflect.TypeFor[work.Lent](),
		"runner: check": reflect.TypeFor[work.CheckSpec](), "runner: check result": reflect.TypeFor[work.CheckResult](), "runner: checks done": reflect.TypeFor[work.ChecksDone](),
		"runner: pack": reflect.TypeFor[pack.Spec](), "runner: unpack": reflect.TypeFor[pack.UnpackSpec](), "archive: manifest": reflect.TypeFor[pack.Manifest](),
		"archive: sleep": reflect.TypeFor[archive.Sleep](), "archive: changeset": reflect.TypeFor[changeset.Changeset](),
		"run log: line": reflect.TypeFor[runlog.Line](), "run log: exit": reflect.TypeFor[runlog.Exit](), "run log: event": reflect.TypeFor[runlog.Event](),
		"transcript: header": reflect.TypeFor[runlog.Header](), "transcript: entry": reflect.TypeFor[runlog.Entry](), "transcript: end": reflect.TypeFor[runlog.End](),
		"transcript: dropped": reflect.TypeFor[runlog.Dropped](), "bake: result": reflect.TypeFor[bake.Result](),
		"tool: call": reflect.TypeFor[tools.Call](), "tool: answer": reflect.TypeFor[tools.Answer](), "tool: ask": reflect.TypeFor[tools.AskInput](),
		"tool: note": reflect.TypeFor[tools.NoteInput](), "tool: propose": reflect.TypeFor[tools.ProposeInput](), "tool: finish": reflect.TypeFor[tools.FinishInput](),
		"tool: context": reflect.TypeFor[tools.ContextInput](), "agent: outcome": reflect.TypeFor[agent.Outcome](),
		"agent loop: settings": reflect.TypeFor[wire.Settings](), "agent loop: line": reflect.TypeFor[wire.Line](), "agent loop: result": reflect.TypeFor[wire.Result](),
		"local VM: record": reflect.TypeFor[box.Record](), "local VM: status": reflect.TypeFor[box.Status](), "local VM: end": reflect.TypeFor[box.End](),
		"run: status": reflect.TypeFor[agent.Status](), "run: class": reflect.TypeFor[agent.Class](), "task summary": reflect.TypeFor[state.Summary](),
		"setup: progress": reflect.TypeFor[setup.Progress](),
	}
}

const never = `Lines marked with - were removed or renamed, but persisted strings never change: JSON tags, kinds, job keys, markers,
labels, metrics and the runner's wire outlive a version. Rename Go code as you like, but restore the old text of this string.
Lines marked with + are new, or moved here: run the test with -update, and review the difference`

// list returns the paths of types, and the values of enumerated leaves, under the shortest path.
func list(t *testing.T, roots map[string]reflect.Type, tag string) []string {
	t.Helper()
	var lines []string
	leaves := map[reflect.Type][]string{}
	for name, typ := range roots {
		for path, leaf := range shapeOf(name, typ, tag) {
			lines = append(lines, path)
			leaves[leaf] = append(leaves[leaf], path)
		}
	}
	var known values
	for typ, paths := range leaves {
		slices.SortFunc(paths, func(a, b string) int { return len(a)*1000 - len(b)*1000 + strings.Compare(a, b) })
		for _, v := range known.of(t, typ) {
			lines = append(lines, paths[0]+" = "+v)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// TestStoredNamesStay lists every JSON path of values in the database, and the values of kinds and phases. It is
// independent of Go names and packages: fields may be grouped into embedded structs, and code may be renamed or moved.
func TestStoredNamesStay(t *testing.T) {
	t.Parallel()
	types := stored()
	types["delayed job"], types["agent's call"] = reflect.TypeFor[state.DueKind](), reflect.TypeFor[state.CallTool]() // in Job.Args, and shown to agents
	golden(t, "strings/stored.txt", list(t, types, "json"), never)
}

// TestWireNamesStay does the same for types exchanged with VMs and agents, and for files.
func TestWireNamesStay(t *testing.T) {
	t.Parallel()
	golden(t, "strings/wire.txt", list(t, wired(), "json"), never)
}

// TestConfigurationKeysStay lists the keys of the configuration and of a repository's own file. A removed key needs an
// error that names its replacement.
func TestConfigurationKeysStay(t *testing.T) {
	t.Parallel()
	keys := list(t, map[string]reflect.Type{"config": reflect.TypeFor[config.Config](), ".errand.yml": reflect.TypeFor[config.RepoFile]()}, "yaml")
	for _, q := range setup.Questions() {
		keys = append(keys, "setup: "+q.Key)
	}
	slices.Sort(keys)
	golden(t, "strings/config.txt", keys, "a key of the configuration was removed or renamed: operators who set it need an error that names the replacement. For a new key run the test with -update")
}

// TestStringsInCodeStay lists the texts that code stores or shows to programs without a type for it. They are found by
// their form, anywhere in the code.
func TestStringsInCodeStay(t *testing.T) {
	t.Parallel()
	found := scan(t)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := slices.Sorted(maps.Keys(found[name]))
			if len(lines) < 4 {
				t.Errorf("found only %d texts: the test searches the wrong place", len(lines))
			}
			golden(t, "strings/"+name+".txt", lines, never)
		})
	}
}
