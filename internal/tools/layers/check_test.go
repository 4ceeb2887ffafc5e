package layers

import (
	"slices"
	"strings"
	"testing"
)

// whole returns packages that need every exception, so that Check finds no fault.
func whole() []Package {
	var list []Package
	for _, e := range Exceptions() {
		p := Package{Path: e.From}
		if e.TestsOnly {
			p.TestImports = []string{Module + e.To}
		} else {
			p.Imports = []string{Module + e.To}
		}
		list = append(list, p)
	}
	return list
}

func TestWrongImportsAreReported(t *testing.T) {
	t.Parallel()
	if faults := Check(whole()); len(faults) > 0 {
		t.Fatalf("faults without a planted one: %v", faults)
	}
	tests := map[string]struct {
		from, to string
		test     bool
		want     string // words of the fault; empty if the import is allowed
	}{
		"the runner imports the domain":               {"internal/runner/work", "state", false, `layer "domain"`},
		"the runner's tests import GitHub":            {"internal/runner", "internal/forge", true, `the tests of internal/runner may not import internal/forge`},
		"the domain imports materials":                {"state/vm", "internal/changeset", false, `layer "materials"`},
		"the domain imports its own packages":         {"state/store", "state/machine", false, ""},
		"the domain's tests import the database":      {"state/store", "state/kv/boltkv", true, ""},
		"storage imports the domain":                  {"state/kv/blob", "state", false, `layer "domain"`},
		"a simulator imports errand":                  {"internal/sim/github/git", "internal/changeset", false, `layer "materials"`},
		"a simulator's tests import errand":           {"internal/sim/github", "internal/fleet/local", true, `layer "machines"`},
		"a simulator imports another":                 {"internal/sim/simcodex", "internal/sim/simmodel", false, ""},
		"the service imports a simulator":             {"internal/server", "internal/sim/simhetzner", false, `layer "simulators"`},
		"a test imports a simulator":                  {"internal/forge/client", "internal/sim/github", true, ""},
		"the service imports costs":                   {"internal/server", "internal/costs", false, "the service simulates"},
		"pages import the server":                     {"internal/admin", "internal/server", false, "assembled once"},
		"the demo imports the server":                 {"internal/demo", "internal/server", false, ""},
		"a step imports the configuration":            {"internal/workflow/launch", "internal/config", false, `layer "faces"`},
		"a step's tests import the configuration":     {"internal/workflow/launch", "internal/config", true, ""},
		"forge imports VMs":                           {"internal/forge/client", "internal/fleet", false, `layer "machines"`},
		"the gateway imports GitHub":                  {"internal/gitproxy", "internal/forge", false, `layer "GitHub"`},
		"a step imports forge's client":               {"internal/workflow", "internal/forge/client", false, "exports of them"},
		"helpers of tests import simulators":          {"internal/forge/forgetest", "internal/sim/github", false, ""},
		"the gateway imports the APIs of models":      {"internal/gateway", "internal/modelapi", false, ""},
		"code imports helpers of tests":               {"internal/server", "internal/fleet/fleettest", false, "for tests"},
		"helpers of tests import helpers of tests":    {"state/kv/kvtest", "internal/disktest", false, `layer "checks"`},
		"a step imports the database":                 {"internal/workflow", "go.etcd.io/bbolt", false, "behind `state/kv`"},
		"a step imports GitHub's client":              {"internal/workflow", "github.com/google/go-github/v66/github", false, "types of these two"},
		"forge imports GitHub's client":               {"internal/forge/client", "github.com/google/go-github/v66/github", false, ""},
		"a package of no layer":                       {"internal/novel", "state", false, "internal/novel belongs to no layer: in " + here},
		"a package whose name begins like a layer's":  {"internal/runnerx", "internal/durable", false, "internal/runnerx belongs to no layer"},
		"a simulator imports the price list":          {"internal/sim/hetzner", "internal/hetznerbill", false, ""},
		"the price list imports a library":            {"internal/hetznerbill", "github.com/google/uuid", false, "only the standard library"},
		"the price list imports the simulator":        {"internal/hetznerbill", "internal/sim/simhetzner", false, `layer "simulators"`},
		"the standard library, and libraries for all": {"internal/words", "github.com/google/uuid", false, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := tt.to
			if !strings.Contains(strings.Split(to, "/")[0], ".") {
				to = Module + to
			}
			p := Package{Path: tt.from}
			if tt.test {
				p.TestImports = []string{to}
			} else {
				p.Imports = []string{to}
			}
			faults := Check(append(whole(), p))
			switch {
			case tt.want == "" && len(faults) > 0:
				t.Errorf("faults = %v, want none", faults)
			case tt.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], tt.want) || !strings.Contains(faults[0], tt.from)):
				t.Errorf("faults = %q, want one with %q", faults, tt.want)
			}
		})
	}
}

func TestUnusedExceptionsAreReported(t *testing.T) {
	t.Parallel()
	for i, e := range Exceptions() {
		faults := Check(slices.Delete(whole(), i, i+1))
		if len(faults) != 1 || !strings.Contains(faults[0], "from "+e.From+" to "+e.To) {
			t.Errorf("without %s: faults = %q", e.From, faults)
		}
	}
}

func TestTheLongestPathDecides(t *testing.T) {
	t.Parallel()
	for pkg, want := range map[string]string{
		"state": "domain", "state/vm": "domain", "state/kv": "storage", "state/kv/blob": "storage",
		"internal/fleet/local": "machines", "internal/fleet/local/box": "runner", "internal/callback/tools": "materials", "internal/callback": "tether",
		"cmd/errand": "command line", "internal/cli/clitest": "wiring", "cmd/errand-runner": "runner", "cmd/errand-demo": "demo", "cmd": "", "stateful": "",
	} {
		if got, ok := Of(pkg); got.Name != want || ok != (want != "") {
			t.Errorf("Of(%s) = %q, %v; want %q", pkg, got.Name, ok, want)
		}
	}
}
