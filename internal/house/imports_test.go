package house_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row says what of ours a package may import.
type row struct {
	may   string // in code and tests
	tests string // in tests only, besides itself and what inTests lists
}

// layers is the table of who may import whom, from the bottom to the top; docs/architecture.md shows
// it. It is exact: what is not used any more has to go, so that the table says what is true.
func layers() map[string]row {
	table := map[string]row{
		// The domain, at the bottom.
		"state/kv":        {},
		"state/kv/boltkv": {may: "internal/durable state/kv"},
		"state/kv/kvtest": {may: "state/kv"},
		"state/kv/blob":   {may: "state/kv"},
		"state":           {may: "state/kv state/kv/blob"},

		// What others are built of: each knows next to nothing.
		"prompts":             {},
		"internal/changeset":  {},
		"internal/runlog":     {},
		"internal/logview":    {may: "internal/runlog internal/words state"},
		"internal/remote":     {},
		"internal/secretscan": {},
		"internal/pushgate":   {may: "internal/changeset internal/secretscan"},
		"internal/durable":    {},
		"internal/archive":    {may: "internal/changeset internal/durable internal/runlog internal/runner/pack"},
		"internal/words":      {may: "state"},
		"internal/comment":    {may: "internal/words state"},
		"internal/trust":      {may: "internal/secretscan state"},

		// What runs on a VM. It knows neither the store nor GitHub.
		"internal/runner/proc":    {},
		"internal/runner/tetherd": {},
		"internal/runner/work":    {may: "internal/changeset internal/durable internal/runner/proc"},
		"internal/runner/pack":    {may: "internal/changeset internal/runner/work"},
		"internal/runner/mcp":     {may: "internal/callback/tools"},
		"internal/runner":         {may: "internal/durable internal/runlog internal/runner/proc internal/runner/tetherd"},
		"internal/agentloop":      {may: "internal/agentloop/wire internal/durable internal/shellrules"},
		"internal/agentloop/wire": {},
		"internal/shellrules":     {},

		// VMs, and the ways to them.
		"internal/fleet":           {may: "internal/remote state", tests: "state/kv/boltkv"},
		"internal/fleet/fleettest": {may: "internal/fleet internal/remote"},
		"internal/fleet/cloudinit": {},
		"internal/fleet/hetzner":   {may: "internal/fleet internal/remote", tests: "state"},
		"internal/fleet/local":     {may: "internal/fleet internal/fleet/local/box internal/remote"},
		"internal/fleet/local/box": {},
		"internal/runnerctl":       {may: "internal/changeset internal/fleet internal/remote internal/runlog internal/runner internal/runner/pack internal/runner/tetherd internal/runner/work"},
		"internal/bake":            {may: "internal/durable internal/fleet internal/remote"},
		"internal/gateway":         {},
		"internal/egress":          {},
		"internal/subscription":    {may: "internal/durable"},
		"internal/callback":        {may: "internal/callback/tools state"},
		"internal/callback/tools":  {},
		"internal/tether":          {may: "internal/egress internal/gateway internal/subscription state"},

		// GitHub, agents.
		"handlers":                 {may: "internal/comment state"},
		"internal/forge":           {may: "internal/changeset state"},
		"internal/agent":           {may: "internal/agentloop/wire internal/runlog internal/shellrules"},
		"internal/agent/agenttest": {may: "internal/agent internal/runlog"},

		// What moves tasks on.
		"internal/queue":    {may: "state"},
		"internal/watch":    {may: "internal/comment internal/forge internal/runlog state"},
		"internal/workflow": {may: "internal/agent internal/archive internal/callback internal/callback/tools internal/changeset internal/comment internal/forge internal/pushgate internal/remote internal/runlog internal/runner internal/runner/pack internal/runner/work internal/runnerctl internal/secretscan internal/shellrules internal/trust prompts state", tests: "internal/config internal/fleet"},
		"internal/admin":    {may: "internal/egress internal/runlog internal/words state"},

		// Where it is put together.
		"internal/config": {may: "internal/agent internal/bake internal/comment internal/egress internal/gateway internal/pushgate internal/secretscan internal/shellrules internal/subscription state"},
		"internal/server": {may: "handlers internal/admin internal/agent internal/archive internal/bake internal/callback internal/config internal/durable internal/egress internal/fleet internal/fleet/cloudinit internal/fleet/hetzner internal/fleet/local internal/forge internal/queue internal/remote internal/runlog internal/runnerctl internal/secretscan internal/subscription internal/tether internal/trust internal/watch internal/words internal/workflow state state/kv state/kv/boltkv"},
		"cmd/errand":      {may: "internal/bake internal/config internal/costs internal/fleet internal/logview internal/server", tests: "state"},
		"cmd/errand-runner": {
			may:   "internal/agentloop internal/agentloop/wire internal/changeset internal/fleet/local/box internal/runner internal/runner/mcp internal/runner/pack internal/runner/proc internal/runner/tetherd internal/runner/work internal/shellrules",
			tests: "internal/agent internal/agent/agenttest internal/runlog",
		},
	}
	maps.Copy(table, aroundLayers())
	return table
}

// aroundLayers is the part of layers for what does not belong to errand as it is installed.
func aroundLayers() map[string]row {
	return map[string]row{
		// The stand-ins know none of our packages; the demo is errand on top of them.
		"internal/sim/simgithub":  {},
		"internal/sim/simhetzner": {},
		"internal/sim/simmodel":   {},
		"internal/sim/simagent":   {},
		"internal/sim/simcodex":   {},
		// The simulator of costs plays on a stand-in: a tool beside the service, of which nothing that serves knows.
		"internal/costs":  {may: "internal/sim/simhetzner state"},
		"internal/demo":   {may: "internal/config internal/fleet internal/fleet/local internal/fleet/local/box internal/forge internal/server internal/sim/simgithub internal/sim/simhetzner internal/sim/simmodel state", tests: "internal/fleet/cloudinit internal/remote"},
		"cmd/errand-demo": {may: "internal/demo internal/sim/simagent"},

		// The house.
		"internal/disktest":    {},
		"internal/house":       {},
		"internal/house/count": {},
		"internal/house/fuzz":  {},
		"internal/house/gen":   {may: "internal/comment internal/config internal/costs internal/gateway state"},
	}
}

// inTests is what every test may import: real things first, stand-ins for the rest.
func inTests() []string {
	return []string{
		"state/kv/boltkv", "state/kv/kvtest", "internal/disktest", "internal/archive", "internal/agent/agenttest", "internal/fleet/fleettest",
		"internal/fleet/local", "internal/fleet/local/box", "internal/sim/simgithub", "internal/sim/simhetzner", "internal/sim/simmodel", "internal/sim/simagent", "internal/sim/simcodex",
	}
}

// imports lists what of ours each package imports: first in code, then in tests.
func imports(t *testing.T) (code, tests map[string]map[string]bool) {
	t.Helper()
	code, tests = map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, f := range goFiles(t) {
		if code[f.pkg()] == nil {
			code[f.pkg()], tests[f.pkg()] = map[string]bool{}, map[string]bool{}
		}
		for _, i := range f.ast.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			ours, ok := strings.CutPrefix(path, module)
			switch {
			case !ok || ours == f.pkg():
			case f.isTest():
				tests[f.pkg()][ours] = true
			default:
				code[f.pkg()][ours] = true
			}
		}
	}
	return code, tests
}

func TestImports(t *testing.T) {
	t.Parallel()
	code, tests := imports(t)
	table := layers()
	for _, pkg := range slices.Sorted(maps.Keys(code)) {
		if pkg == "e2e" || strings.HasPrefix(pkg, "e2e/") {
			continue // stories and proofs stand outside and see everything
		}
		r, ok := table[pkg]
		if !ok {
			t.Errorf("%s stands in no layer: give it a row in imports_test.go and in docs/architecture.md", pkg)
			continue
		}
		may, mayTest := strings.Fields(r.may), append(strings.Fields(r.tests), inTests()...)
		for _, i := range slices.Sorted(maps.Keys(code[pkg])) {
			if !slices.Contains(may, i) {
				t.Errorf("%s may not import %s", pkg, i)
			}
		}
		for _, i := range slices.Sorted(maps.Keys(tests[pkg])) {
			if !slices.Contains(may, i) && !slices.Contains(mayTest, i) {
				t.Errorf("the tests of %s may not import %s", pkg, i)
			}
		}
		for _, i := range may {
			if !code[pkg][i] {
				t.Errorf("%s may import %s, but does not: take it out of the table", pkg, i)
			}
		}
		for _, i := range strings.Fields(r.tests) {
			if !tests[pkg][i] {
				t.Errorf("the tests of %s may import %s, but do not: take it out of the table", pkg, i)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(table)) {
		if code[pkg] == nil {
			t.Errorf("the table has %s, but the tree has not", pkg)
		}
	}
}

// TestStandInsKnowNothingOfUs: a stand-in that shares code with errand would share its mistakes.
func TestStandInsKnowNothingOfUs(t *testing.T) {
	t.Parallel()
	code, tests := imports(t)
	n := 0
	for pkg := range code {
		if !strings.HasPrefix(pkg, "internal/sim/") {
			continue
		}
		n++
		for _, list := range []map[string]bool{code[pkg], tests[pkg]} {
			for i := range list {
				if !strings.HasPrefix(i, "internal/sim/") {
					t.Errorf("%s imports %s", pkg, i)
				}
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d stand-ins were looked at", n)
	}
}
