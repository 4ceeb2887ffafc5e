package doctor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/doctor"
)

// TestProgramIsVisibleInSandboxes checks that a program counts only if sandboxes that isolate files see it, and what it links to.
func TestProgramIsVisibleInSandboxes(t *testing.T) {
	home, bound, other := t.TempDir(), t.TempDir(), t.TempDir()
	program := func(dir string) string {
		path := filepath.Join(dir, "an-agent")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho 1.2.3\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(target, path string) string {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	program(home)
	program(bound)
	links := t.TempDir()
	link(filepath.Join(home, "an-agent"), filepath.Join(links, "an-agent"))
	linked := link(bound, filepath.Join(t.TempDir(), "linked"))
	t.Setenv("PATH", home+":"+os.Getenv("PATH"))
	for name, c := range map[string]struct {
		p      doctor.Programs
		status doctor.Status
		found  string
	}{
		"in the home of errand's user":     {doctor.Programs{Visible: []string{"/usr"}}, doctor.Failed, "only installed at " + home},
		"without isolation":                {doctor.Programs{}, doctor.OK, home + "/an-agent: 1.2.3"},
		"in a bound folder":                {doctor.Programs{Path: []string{bound}, Visible: []string{"/usr", bound}}, doctor.OK, bound + "/an-agent: 1.2.3"},
		"in a folder that is not bound":    {doctor.Programs{Path: []string{bound}, Visible: []string{"/usr", other}}, doctor.Failed, "only installed at " + home},
		"a link to the home":               {doctor.Programs{Path: []string{links}, Visible: []string{links}}, doctor.Failed, "sandboxes do not see"},
		"in a bound folder that is a link": {doctor.Programs{Path: []string{linked}, Visible: []string{linked}}, doctor.OK, "1.2.3"},
		"in a folder with a similar name":  {doctor.Programs{Visible: []string{home[:len(home)-1]}}, doctor.Failed, "sandboxes do not see"},
	} {
		c.p.Commands = map[string]string{"command": "an-agent"}
		list := doctor.ProgramCheck(c.p)(t.Context())
		if len(list) != 1 || list[0].Status != c.status || !strings.Contains(list[0].Found, c.found) {
			t.Errorf("%s: got %+v, want %s %q", name, list, c.status, c.found)
		}
	}
}
