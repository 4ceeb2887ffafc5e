package egress

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGroups: a group is replaced by its hosts, and container registries are not reachable by default.
func TestGroups(t *testing.T) {
	t.Parallel()
	var names []string
	for _, g := range Groups() {
		names = append(names, g.Name)
		if len(g.Hosts) == 0 || g.About == "" {
			t.Errorf("the group %s is incomplete", g.Name)
		}
		for _, host := range g.Hosts {
			if err := Check(host); err != nil || strings.HasPrefix(host, "*.") && strings.Count(host, ".") < 2 {
				t.Errorf("%s: %v", host, err)
			}
			if _, nested := groupByName(host); nested {
				t.Errorf("%s is a group in a group", host)
			}
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("groups are %v", names)
	}
	for _, name := range Registries() {
		if !slices.Contains(names, name) || name == "containers" {
			t.Errorf("%s is in the default", name)
		}
	}
	if diff := cmp.Diff([]string{"a.test", "proxy.golang.org", "sum.golang.org", "*.b.test:8443"}, Hosts([]string{"a.test", "go", "*.b.test:8443"})); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	without, with := Policy{Allow: Hosts(Registries())}, Policy{Allow: Hosts([]string{"containers"})}
	for _, host := range []string{"registry-1.docker.io", "ghcr.io", "pkg-containers.githubusercontent.com", "cdn01.quay.io", "westeurope.data.mcr.microsoft.com"} {
		if err := without.check(host, "443"); err == nil || !strings.Contains(err.Error(), "or the group containers,") {
			t.Errorf("%s without the group: %v", host, err)
		}
		if err := with.check(host, "443"); err != nil {
			t.Errorf("%s with the group: %v", host, err)
		}
	}
	if err := with.check("elsewhere.test", "443"); err == nil || strings.Contains(err.Error(), "group") {
		t.Errorf("a host of no group: %v", err)
	}
}

// TestGroupsAreDocumented: docs/egress.md lists the hosts of each group.
func TestGroupsAreDocumented(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/egress.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range Groups() {
		row := "| `" + g.Name + "` | " + g.About + " | `" + strings.Join(g.Hosts, "`, `") + "` |\n"
		if !strings.Contains(string(guide), row) {
			t.Errorf("docs/egress.md lacks the row\n%s", row)
		}
	}
}
