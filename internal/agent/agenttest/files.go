package agenttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
)

// testFiles: tools can change only files of the checkout, by path or through a link, with and without a list of
// commands; refused calls are counted.
func testFiles(t *testing.T, h Harness) {
	for name, shell := range map[string][]string{"with a list": {"cat"}, "without a list": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := NewBox(t)
			if err := os.Symlink(box.Home, filepath.Join(box.Work, "way")); err != nil {
				t.Fatal(err)
			}
			write := func(path string) Turn {
				return Turn{Calls: []Call{{Name: "Write", Input: map[string]any{"file_path": path, "content": "written\n"}}}}
			}
			m := h.Model(t, one(
				write(
					filepath.Join(box.Work, "inside"),
				),
				write(filepath.Join(box.Work, "new", "inside")),
				write(filepath.Join(box.Home, "outside")),
				write(filepath.Join(box.Work, "way", "outside")),
				write(filepath.Join(box.Run, "more")),
				Turn{Text: "Done."},
			))
			spec := box.Spec(m, "Write files.")
			spec.Shell = shell
			r := Do(t, h, spec)
			need(t, r, agent.StatusOK)
			if box.Read("inside") != "written\n" || box.Read("new/inside") != "written\n" {
				t.Errorf("inside: %q and %q", box.Read("inside"), box.Read("new/inside"))
			}
			for _, path := range []string{filepath.Join(box.Home, "outside"), filepath.Join(box.Run, "more")} {
				if _, err := os.Stat(path); err == nil {
					t.Errorf("%s was written", path)
				}
			}
			if len(r.Result.Denials) != 3 {
				t.Errorf("denials %q, want 3; stderr %s", r.Result.Denials, r.Ended.Stderr)
			}
		})
	}
}
