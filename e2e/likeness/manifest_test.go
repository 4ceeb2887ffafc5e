package likeness

import (
	"os"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

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
	var manifest struct {
		Permissions map[string]string `yaml:"default_permissions"`
		Events      []string          `yaml:"default_events"`
	}
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sim.Close() }()
	app := sim.App()
	if diff := cmp.Diff(manifest.Permissions, app.Permissions); diff != "" {
		t.Errorf("permissions (-app.yml +simulator):\n%s", diff)
	}
	slices.Sort(manifest.Events)
	slices.Sort(app.Events)
	if diff := cmp.Diff(manifest.Events, app.Events); diff != "" {
		t.Errorf("events (-app.yml +simulator):\n%s", diff)
	}
}
