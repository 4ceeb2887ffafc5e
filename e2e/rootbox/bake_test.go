//go:build linux

package rootbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// baking configures the group whose image is baked. The agent reports the files that it left on the disk.
const baking = `bake:
  web:
    repos: [` + demo.Full + `]
    script: |
      mkdir -p /opt/tool
      echo 1.2.3 >/opt/tool/version
      echo secret >/root/.netrc
    warm: |
      git log -1 --format=%s >~/.warmed
`

// seen reports the contents of the agent's VM: the tool, the warm cache, the copy of the repository, and the number of
// host keys.
const seen = `cat /opt/tool/version ~/.warmed >seen.txt; git -C ~/.errand/seed/` + demo.Full + `.git rev-parse --verify -q main >/dev/null && echo seeded >>seen.txt; git add seen.txt`

// TestBake bakes a base image on a real system with OpenSSH, lets a task work on a VM created from it, and checks that
// secrets and identities are not in the image.
func TestBake(t *testing.T) {
	t.Parallel()
	lab := openLab(t)
	shared, err := ready()
	must(t, err)
	exe, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	l := &life{t: t, machines: &rootbox.Machines{Lab: lab, Binds: []string{exe}}, log: filepath.Join(dir, "errand.log")}
	log, err := os.Create(l.log)
	must(t, err)
	l.world, err = demo.New(t.Context(), demo.Config{
		Dir: dir, BinDir: shared.Bin, Agent: []string{exe, "simagent"}, StandIn: true, Key: rsatest.Key(), Version: "test",
		Log: zerolog.New(log).With().Timestamp().Logger(), Extra: configYAML + baking, Timing: timing(), Script: strings.Replace(script, "DO", seen, 1),
		Files:    map[string]string{"README.md": "# greeting\n", "greeting.txt": "hello\n", ".errand.yml": "plan: none\n"},
		Provider: demo.ProviderHetzner, Machines: l.machines,
		Account: func(c *simhetzner.Config) {
			c.IPv4, c.Period, c.Took = lab.Ordered(), time.Hour, simhetzner.Scaled(60)
		},
	})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			data, _ := os.ReadFile(l.log)
			t.Logf("log:\n%s", data[max(0, len(data)-20000):])
		}
		if err := errors.Join(l.world.Close(), log.Close()); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the image, and the deletion of the VM in which it was baked", func() bool {
		return l.logged("image available") && len(l.world.Cloud.Objects("server")) == 0
	})
	images := l.world.Cloud.Objects("image")
	if len(images) != 1 || images[0].Labels[fleet.LabelGroup] != "web" || images[0].Labels[fleet.LabelKind] != fleet.ImageBase {
		t.Fatalf("got images %+v", images)
	}

	i, err := l.ada().OpenIssue(demo.Full, simgithub.NewIssue{Title: "Greet the world", Body: "The greeting is incomplete."})
	must(t, err)
	l.issue = i.Number
	must(t, l.ada().Assign(demo.Full, l.issue, demo.Machine))
	must(t, l.world.Model.Waiting(within(t), "work"))
	box := l.box()
	for what, cmd := range map[string]string{
		"a credential":      "test -e /root/.netrc",
		"another VM's name": "grep -q bake /etc/hostname",
	} {
		if _, err := box.Exec(within(t), "sh", "-c", cmd); err == nil {
			t.Errorf("%s is in the image", what)
		}
	}
	l.world.Model.Release("work")
	task := l.wantPublished()
	pull, err := l.ada().Issue(demo.Full, task.PR.Number)
	must(t, err)
	if data, err := l.ada().File(demo.Full, pull.Pull.Head, "seen.txt"); err != nil || !strings.HasPrefix(string(data), "1.2.3\n") || !strings.HasSuffix(string(data), "\nseeded\n") {
		t.Errorf("the agent found %q, %v", data, err)
	}
}
