// Package layers defines which package may import which: an ordered list of layers, and a few rules that cut
// across them. It also reads the packages of the tree, so that the rules can be checked and the tables in the
// documents generated.
//
// A package belongs to a layer by its path, so a new package below a listed path needs no edit. Start with All.
package layers

import (
	"slices"
	"strings"
)

// A Layer is a group of packages that may import each other and the layers that it lists.
type Layer struct {
	Name string
	// Doc describes the layer's packages in one sentence.
	Doc string
	// Paths lists the packages of the layer, each with all packages below it; they need not exist yet. The longest path
	// wins.
	Paths []string
	// May names the other layers that the packages may import. They are earlier in the list, so there are no cycles.
	May []string
}

// standardOnly is the layer whose packages import only the standard library.
const standardOnly = "base"

// All returns the layers from the bottom to the top.
func All() []Layer {
	product := []string{standardOnly, "materials", "runner", "storage", "domain", "conversation", "GitHub", "agents", "machines", "tether", "movement", "faces"}
	everything := append(slices.Clone(product), "wiring", "command line", "simulators")
	return []Layer{
		{standardOnly, "All that errand and its simulators share: what Hetzner Cloud charges, waiting, and a key and a client for tests. Standard library only.", []string{
			"internal/clock", "internal/hetznerbill", "internal/rsatest", "internal/webtest",
		}, nil},
		{"materials", "One subject each; nothing about tasks, GitHub or VMs.", []string{
			"prompts", "internal/agentloop/wire", "internal/attachment", "internal/callback/tools", "internal/changeset", "internal/durable", "internal/gates", "internal/httpserver", "internal/keyfile", "internal/naming", "internal/pushgate",
			"internal/remote", "internal/runlog", "internal/scan", "internal/secretscan", "internal/shellrules",
		}, nil},
		{"runner", "The programs on a VM. They know neither the store nor GitHub.", []string{
			"internal/runner", "internal/agentloop", "internal/fleet/local/box", "cmd/errand-runner",
		}, []string{standardOnly, "materials"}},
		{"storage", "Bytes by key.", []string{"state/kv"}, []string{"materials"}},
		{"domain", "Tasks, phases, events, jobs; pure `Next`; `Apply`, the only way to change a task.", []string{"state"}, []string{"storage"}},
		{"conversation", "Comments, texts for people, trust, and statements about what was done.", []string{
			"internal/words", "internal/comment", "internal/provenance", "internal/trust",
		}, []string{"materials", "domain"}},
		{"GitHub", "Webhooks from GitHub, and calls of its API.", []string{
			"handlers", "internal/forge",
		}, []string{standardOnly, "materials", "domain", "conversation"}},
		{"agents", "The command line of each agent program, and its output as events.", []string{"internal/agent"}, []string{"materials"}},
		{"machines", "VMs, runs on them, and their saved work.", []string{
			"internal/archive", "internal/bake", "internal/fleet", "internal/runnerctl",
		}, []string{standardOnly, "materials", "runner", "domain"}},
		{"tether", "The services that a VM can reach through errand.", []string{
			"internal/budget", "internal/callback", "internal/egress", "internal/forward", "internal/gateway", "internal/gitproxy", "internal/modelapi", "internal/subscription", "internal/tether",
		}, []string{standardOnly, "materials", "domain"}},
		{"movement", "Progress of tasks: workers, steps, watchers.", []string{
			"internal/pause", "internal/purge", "internal/queue", "internal/retention", "internal/summary", "internal/taskvm", "internal/watch", "internal/workflow",
		}, []string{standardOnly, "materials", "runner", "domain", "conversation", "GitHub", "agents", "machines", "tether"}},
		{"faces", "Pages, logs and the files that operators write.", []string{
			"internal/admin", "internal/config", "internal/logview",
		}, []string{standardOnly, "materials", "domain", "conversation", "agents", "machines", "tether"}},
		{"wiring", "The service, and what its command line is made of.", []string{
			"internal/server", "internal/backup", "internal/costs", "internal/doctor", "internal/initrepo", "internal/setup", "internal/rotation",
			"internal/selfclient", "internal/cli",
		}, product},
		{"command line", "What an operator types: commands that call the running errand, and those that work without it.", []string{
			"internal/operator", "cmd/errand",
		}, append(slices.Clone(product), "wiring")},
		{"simulators", "GitHub, Hetzner, models and agents for the demo and tests. They share no code with errand but the base.", []string{"internal/sim"}, []string{standardOnly}},
		{"demo", "errand on simulators.", []string{"internal/demo", "cmd/errand-demo"}, everything},
		{"checks", "Tests of the whole and the commands behind the Makefile.", []string{
			"e2e", "internal/buildtest", "internal/cputest", "internal/disktest", "internal/heavytest", "internal/repotest", "internal/tools",
		}, append(slices.Clone(everything), "demo")},
	}
}

// An Importer rule restricts the importers of a package in addition to the layers. Both are paths with everything
// below.
type Importer struct {
	Of, Only []string
	Why      string
}

// Importers returns the rules about single packages and libraries. They bind code, not tests.
func Importers() []Importer {
	return []Importer{
		{[]string{"internal/server"}, []string{"cmd/errand", "internal/demo", "e2e"}, "the server is assembled once, for the service and for the demo"},
		{[]string{"internal/forge/client", "internal/forge/publish"}, []string{"internal/forge"}, "other packages use what `internal/forge` exports of them"},
		{[]string{"internal/doctor"}, []string{"internal/server", "cmd/errand"}, "it examines the other packages"},
		{[]string{"internal/costs"}, []string{"cmd/errand", "internal/tools"}, "the service simulates no costs"},
		{[]string{"go.etcd.io/bbolt"}, []string{"state/kv/boltkv"}, "the database is behind `state/kv`"},
		{[]string{"github.com/google/go-github", "github.com/palantir/go-githubapp"}, []string{"handlers", "internal/forge"}, "other packages know GitHub by the types of these two"},
		{[]string{"github.com/hetznercloud/hcloud-go"}, []string{"internal/fleet/hetzner", "internal/sim"}, "other packages know Hetzner Cloud by the types of `internal/fleet`"},
	}
}

// An Exception permits an import that the layers refuse. An exception that nothing needs is a fault.
type Exception struct {
	From, To  string // packages, with everything below them
	TestsOnly bool
	Why       string
}

// Exceptions returns the imports that are permitted although the layers refuse them.
func Exceptions() []Exception {
	return []Exception{
		{"internal/workflow", "internal/config", true, "steps are tested with settings as repositories write them"},
		{"cmd/errand-runner", "internal/agent", true, "the agent on the VM passes the suite of all agents"},
	}
}

// forTests lists the packages that every test, and every package that helps tests, may import in addition to its layer
// and those below: real implementations and simulators. Tests may also import packages whose names end in "test".
func forTests() []string {
	return []string{"state/kv", "internal/archive", "internal/fleet/local", "internal/sim"}
}

// Of returns the layer of a package.
func Of(pkg string) (Layer, bool) {
	var found Layer
	longest := ""
	for _, l := range All() {
		for _, path := range l.Paths {
			if within(pkg, path) && len(path) > len(longest) {
				found, longest = l, path
			}
		}
	}
	return found, longest != ""
}

// within reports whether a package is the one at path, or below it. A major version's suffix is below.
func within(pkg, path string) bool { return pkg == path || strings.HasPrefix(pkg, path+"/") }

// withinAny reports whether a package is at or below one of the paths.
func withinAny(pkg string, paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return within(pkg, path) })
}
