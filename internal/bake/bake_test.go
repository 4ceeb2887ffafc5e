package bake

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/fleet"
)

// repository creates a git repository with one commit and returns its folder.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	env := append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module shop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "Begin"}, {"branch", "other"}} {
		if _, err := git(t.Context(), env, append([]string{"-C", dir}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func source(t *testing.T, from string) Git {
	return Git{Dir: filepath.Join(t.TempDir(), "copies"), Remote: func(context.Context, string) (string, string, error) {
		return from, "Basic c2VjcmV0", nil
	}}
}

// TestBake checks the whole content of an image.
func TestBake(t *testing.T) {
	t.Parallel()
	c, src := newCloud(t), source(t, repository(t))
	groups := Groups{"web": {
		Repos: []string{"Acme/Shop", "acme/*"}, Image: "debian-13", Type: "cx23", Location: "fsn1",
		Script: "echo installing >&2\nmkdir opt && echo 1.2 >opt/go", Warm: "test -f go.mod\ngit log -1 --format=%s\nmkdir -p ~/.cache && cp go.mod ~/.cache/warm",
	}}
	b, log := c.baker(groups, func(cfg *Config) {
		cfg.Source, cfg.Clean = src, "mkdir -p etc && touch etc/cleaned"
		cfg.Runner = func(arch string) ([]byte, string, error) { return []byte("runner for " + arch), "errand-runner-1", nil }
	})
	img, err := b.Bake(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{fleet.LabelKind: "base", fleet.LabelGroup: "web", LabelDigest: groups["web"].digest(), LabelBaked: "1795262400"}
	if diff := cmp.Diff(want, img.Labels); diff != "" || !img.Ready {
		t.Errorf("ready %t, labels:\n%s", img.Ready, diff)
	}
	vm := c.vms["bake-web-g1"]
	for file, text := range map[string]string{
		"opt/go": "1.2\n", "etc/cleaned": "", ".cache/warm": "module shop\n", ".errand/bin/errand-runner-1": "runner for ",
		".errand/seed/acme/shop.git/HEAD": "ref: refs/heads/main\n",
	} {
		if data, err := os.ReadFile(filepath.Join(vm.home, file)); err != nil || !strings.HasPrefix(string(data), text) {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
	if seen, err := os.ReadFile(filepath.Join(vm.bin, "synced")); err != nil || !strings.Contains(string(seen), "etc\n") {
		t.Errorf("files at the time of the sync: %q, %v", seen, err)
	}
	if refs, err := git(t.Context(), os.Environ(), "-C", filepath.Join(vm.home, ".errand/seed/acme/shop.git"), "branch", "--format=%(refname)"); err != nil || refs != "refs/heads/main\nrefs/heads/other" {
		t.Errorf("branches %q, %v", refs, err)
	}
	config, err := os.ReadFile(filepath.Join(vm.home, ".errand/seed/acme/shop.git/config"))
	if err != nil || strings.Contains(string(config), "remote") {
		t.Errorf("the copy still has a remote: %s, %v", config, err)
	}
	if left, err := os.ReadDir(src.Dir); err != nil || len(left) > 0 {
		t.Errorf("files left on this host: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(vm.home, work)); err == nil {
		t.Error("the checkout is still there")
	}
	if diff := cmp.Diff([]Order{{Owner: "bake-web", Image: "debian-13", Type: "cx23", Location: "fsn1", Labels: map[string]string{fleet.LabelKind: "baking", fleet.LabelGroup: "web"}}}, c.orders); diff != "" {
		t.Error(diff)
	}
	if !vm.root || c.released["bake-web-g1"] != fleet.ReasonDone {
		t.Errorf("root %t, released %q", vm.root, c.released)
	}
	for _, part := range []string{`"message":"installing"`, `"step":"script"`, `"message":"Begin"`, "image available"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %s:\n%s", part, log)
		}
	}
	if strings.Contains(log.String(), "c2VjcmV0") {
		t.Error("the log has the credential")
	}
}

// TestBakeFails: after any failure the VM is deleted and the error names the cause.
func TestBakeFails(t *testing.T) {
	t.Parallel()
	lost := errors.New("the answer was lost")
	tests := map[string]struct {
		group   Group
		change  func(*cloud, *Config)
		want    string
		images  int
		nothing bool // no VM was created
	}{
		"no such group":              {change: func(_ *cloud, cfg *Config) { cfg.Groups = nil }, want: "no such group", nothing: true},
		"no VM":                      {change: func(c *cloud, _ *Config) { c.fail["acquire"] = fleet.ErrNoCapacity }, want: "no VM available", nothing: true},
		"the script":                 {group: Group{Script: "echo one\necho two >&2\nfalse\necho three"}, want: "run the script: exit status 1, after:\none\ntwo"},
		"it takes long":              {group: Group{Script: "echo waiting; sleep 60", Timeout: 300 * time.Millisecond}, want: "it took longer than 300ms"},
		"the clean-up":               {change: func(_ *cloud, cfg *Config) { cfg.Clean = "echo no; exit 3" }, want: "clean up: exit status 3, after:\nno"},
		"the repository":             {change: func(_ *cloud, cfg *Config) { cfg.Source = noSource{errors.New("no access")} }, want: "copy acme/shop: no access"},
		"the warming":                {group: Group{Warm: "cat nothing"}, change: func(c *cloud, cfg *Config) { cfg.Source = source(c.t, repository(c.t)) }, want: "warm its caches: exit status 1, after:\ncat: nothing"},
		"power-off fails":            {change: func(c *cloud, _ *Config) { c.fail["power off"] = lost }, want: "power off: the answer was lost"},
		"image creation fails":       {change: func(c *cloud, _ *Config) { c.fail["image"] = fleet.ErrInvalid }, want: "create the image: provider refuses", images: 1},
		"it is unusable":             {change: func(c *cloud, _ *Config) { c.spoil = true }, want: "image 102 cannot be used"},
		"it never becomes available": {change: func(c *cloud, _ *Config) { c.pending = 1e6 }, want: "not available after 1h0m0s"},
		"the VM will stay":           {group: Group{Script: "false"}, change: func(c *cloud, _ *Config) { c.fail["release"] = lost }, want: "the answer was lost"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			tt.group.Repos = []string{"acme/shop"}
			b, _ := c.baker(Groups{"web": tt.group}, func(cfg *Config) {
				if tt.change != nil {
					tt.change(c, cfg)
				}
			})
			_, err := b.Bake(t.Context(), "web")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if want := map[bool]int{true: 0, false: 1}[tt.nothing]; len(c.released) != want || len(c.images) != tt.images {
				t.Errorf("released %v, %d images", c.released, len(c.images))
			}
			for _, why := range c.released {
				if why != fleet.ReasonFailed {
					t.Errorf("released as %s", why)
				}
			}
		})
	}
}

// TestCanceledBakeDeletesItsVM: the VM is deleted even if the context ends.
func TestCanceledBakeDeletesItsVM(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	ctx, cancel := context.WithCancel(t.Context())
	b, _ := c.baker(Groups{"web": {Repos: []string{"acme/*"}}}, func(cfg *Config) {
		cfg.Wait = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	})
	if _, err := b.Bake(ctx, "web"); !errors.Is(err, context.Canceled) || len(c.released) != 1 {
		t.Errorf("error %v, released %v", err, c.released)
	}
}

// TestLostAnswer: an image is found again if the response to its creation was lost, and no second one is created.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	c.fail["image"] = fleet.ErrUnknownOutcome
	b, _ := c.baker(Groups{"web": {Repos: []string{"acme/*"}}}, nil)
	if _, err := b.Bake(t.Context(), "web"); err != nil || len(c.images) != 1 {
		t.Errorf("error %v, %d images", err, len(c.images))
	}
}

// TestTwoImagesAreKept: the two newest images are kept, as are images of other groups and images that are not base images.
func TestTwoImagesAreKept(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	other := map[string]map[string]string{
		"a": {fleet.LabelKind: "base", fleet.LabelGroup: "other"}, "b": {fleet.LabelKind: "sleep", fleet.LabelGroup: "web"}, "c": {},
	}
	for _, id := range slices.Sorted(maps.Keys(other)) {
		c.images = append(c.images, fleet.Image{ID: id, Labels: other[id], Ready: true})
	}
	b, _ := c.baker(Groups{"web": {Repos: []string{"acme/*"}}}, nil)
	var last []string
	for range 4 {
		_ = c.wait(t.Context(), time.Hour)
		img, err := b.Bake(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		last = append(last, img.ID)
	}
	if diff := cmp.Diff(append([]string{"a", "b", "c"}, last[2:]...), c.ids()); diff != "" {
		t.Error(diff)
	}
	list, err := c.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if usable := AvailableImages(list, "web"); len(usable) != 2 || usable[0].ID != last[3] {
		t.Errorf("usable: %v", usable)
	}
}
