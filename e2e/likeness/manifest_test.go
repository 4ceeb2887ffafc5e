package likeness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestManifest: the simulator's default App has exactly the permissions and events of app.yml. With more, a missing
// permission would only be noticed at real customers.
func TestManifest(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../app.yml")
	if err != nil {
		t.Fatal(err)
	}
	var listed struct {
		Permissions map[string]string `yaml:"default_permissions"`
		Events      []string          `yaml:"default_events"`
	}
	if err := yaml.Unmarshal(raw, &listed); err != nil {
		t.Fatal(err)
	}
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sim.Close() }()
	app := sim.App()
	if diff := cmp.Diff(listed.Permissions, app.Permissions); diff != "" {
		t.Errorf("permissions (-app.yml +simulator):\n%s", diff)
	}
	slices.Sort(listed.Events)
	slices.Sort(app.Events)
	if diff := cmp.Diff(listed.Events, app.Events); diff != "" {
		t.Errorf("events (-app.yml +simulator):\n%s", diff)
	}
}

// TestEventsOfEnterpriseServers: errand omits exactly those events from an App's manifest that the description of the server's version lacks.
func TestEventsOfEnterpriseServers(t *testing.T) {
	t.Parallel()
	const prefix = "ghes-"
	files, err := filepath.Glob(filepath.Join(filepath.Dir(need(t, "openapi-webhooks/generated/api.github.com.json")), prefix+"*.json"))
	if err != nil || len(files) < 2 {
		t.Fatalf("found the descriptions %v of Enterprise Servers (%v)", files, err)
	}
	for _, file := range files {
		version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), prefix), ".json")
		known := map[string]bool{}
		described, _ := readJSON(t, file)["webhooks"].(map[string]any)
		for _, hook := range described {
			post, _ := hook.(map[string]any)["post"].(map[string]any)
			about, _ := post["x-github"].(map[string]any)
			known[strings.ReplaceAll(fmt.Sprint(about["subcategory"]), "-", "_")] = true
		}
		want := slices.DeleteFunc(forge.Events(), func(e string) bool { return known[e] })
		if diff := cmp.Diff(want, manifest.UnknownEvents("https://ghes.example", version+".0")); diff != "" {
			t.Errorf("version %s: events that it does not know (-description +errand):\n%s", version, diff)
		}
	}
}
