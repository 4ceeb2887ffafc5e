// Command deadcode fails if no program of the tree can reach some function. It runs the tool of the same name
// from golang.org/x/tools, whose version go.mod pins, and applies a short list of exemptions.
//
// The roots are the programs below cmd and the commands behind the Makefile. Tests are not roots, so code that only
// tests call is reported.
//
// The tool assumes that reflection calls every exported method of a type whose values are stored in interfaces, so it
// never reports these methods. uncalledMethods finds those that no file but tests mentions. It compares names only: a
// method with the name of another one that is called stays unnoticed. Start with exemptions.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// module is the prefix of the import paths of the tree's packages.
const module = "github.com/errand-bot/errand/"

// roots returns the programs from which functions must be reachable.
func roots() []string { return []string{"./cmd/...", "./internal/tools/..."} }

// exemptions returns the functions that stay although no program reaches them, with the reasons.
func exemptions() map[string]string {
	return map[string]string{
		"state/kv.Name":                         "wrappers of a database read it; in the tree only tests wrap one",
		"internal/sim/simhetzner.NewClock":      "the tests that run on this simulator share its clock",
		"internal/sim/simhetzner.Clock.Now":     "see NewClock",
		"internal/sim/simhetzner.Clock.Advance": "see NewClock",
		"internal/sim/simhetzner.Clock.Set":     "see NewClock",
		"internal/queue.Queue.Step":             "the random walks take single steps, with a virtual clock",
		"internal/demo.World.Timing":            "tests start errand in a separate process and pass the timing to it",
	}
}

func main() {
	faults, err := check()
	if err != nil {
		fmt.Fprintln(os.Stderr, "deadcode:", err)
		os.Exit(1)
	}
	for _, fault := range faults {
		fmt.Println(fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// check runs the tool and returns the faults.
func check() ([]string, error) {
	args := append([]string{"tool", "deadcode", "-f", `{{range .Funcs}}{{println .Position $.Path .Name}}{{end}}`}, roots()...)
	cmd := exec.Command("go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	methods, err := uncalledMethods(".")
	if err != nil {
		return nil, err
	}
	return judge(string(out)+methods, exemptions()), nil
}

// judge returns a fault for each reported function without an exemption, and for each exemption that is not needed.
// The lines are positions, import paths and names.
func judge(out string, exempt map[string]string) []string {
	var faults []string
	used := map[string]bool{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		name := strings.TrimPrefix(f[1], module) + "." + f[2]
		if strings.HasPrefix(name, "internal/tools/layers.") {
			continue // half of it is used only by package repotest
		}
		if _, ok := exempt[name]; ok {
			used[name] = true
			continue
		}
		faults = append(faults, fmt.Sprintf("%s: no program reaches %s: delete it, or exempt it in internal/tools/deadcode with a reason", f[0], name))
	}
	for name := range exempt {
		if !used[name] {
			faults = append(faults, fmt.Sprintf("%s no longer needs an exemption: remove it from internal/tools/deadcode", name))
		}
	}
	slices.Sort(faults)
	return faults
}
