package shellrules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/shellrules"
)

// checkout is a folder with one in it that tools may change, and links out of that one.
func checkout(t *testing.T) (root, work string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work = filepath.Join(root, "work")
	if err := os.MkdirAll(filepath.Join(work, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"out": root, "dangling": filepath.Join(root, "nothing"), "up": "../other", "in": "sub", "soon": "sub/new",
	} {
		if err := os.Symlink(to, filepath.Join(work, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(work, filepath.Join(root, "same")); err != nil {
		t.Fatal(err)
	}
	return root, work
}

func TestJudgeFile(t *testing.T) {
	t.Parallel()
	root, work := checkout(t)
	for name, test := range map[string]struct {
		path string
		may  bool
	}{
		"in it":                          {"a.go", true},
		"in a folder that is not there":  {"new/deep/a.go", true},
		"by its whole path":              {filepath.Join(work, "a.go"), true},
		"there and back":                 {"sub/../../work/a.go", true},
		"through a link within":          {"in/a.go", true},
		"a link within, to nothing yet":  {"soon", true},
		"by another name of the folder":  {filepath.Join(root, "same", "a.go"), true},
		"in a sibling folder":            {"../a.go", false},
		"a name that begins like it":     {work + "er/a.go", false},
		"by a whole path elsewhere":      {"/etc/passwd", false},
		"through a link":                 {"out/a.go", false},
		"a link to nothing":              {"dangling", false},
		"through a link to nothing":      {"dangling/a.go", false},
		"a relative link":                {"up", false},
		"in the home folder":             {"~/a.go", false},
		"where programs put what passes": {"/tmp-not/a", false},
	} {
		r := shellrules.Rules{Write: []string{work}}
		if why := r.JudgeFile(work, test.path); (why == nil) != test.may {
			t.Errorf("%s: %s: %v, want it allowed: %v", name, test.path, why, test.may)
		}
	}
	if why := (shellrules.Rules{}).JudgeFile(work, "/etc/passwd"); why != nil {
		t.Errorf("without a list: got error %v", why)
	}
}

func TestHookOnFiles(t *testing.T) {
	t.Parallel()
	_, work := checkout(t)
	patch := func(lines ...string) map[string]any {
		return map[string]any{"command": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"}
	}
	for name, test := range map[string]struct {
		tool   string
		input  map[string]any
		refuse string // the reason for the refusal, empty if it is allowed
		leave  bool   // it is given where leave is asked for
	}{
		"writes inside":         {"Write", map[string]any{"file_path": filepath.Join(work, "a")}, "", true},
		"writes outside":        {"Write", map[string]any{"file_path": "/etc/a"}, "/etc/a", false},
		"edits outside":         {"Edit", map[string]any{"file_path": "../a"}, "../a", false},
		"a notebook outside":    {"NotebookEdit", map[string]any{"notebook_path": "/n.ipynb"}, "/n.ipynb", false},
		"reads outside":         {"Read", map[string]any{"file_path": "/etc/a"}, "", false},
		"a tool of a server":    {"mcp__x__Write", map[string]any{"file_path": "/etc/a"}, "", false},
		"a patch inside":        {"apply_patch", patch("*** Add File: a", "+/etc/a"), "", true},
		"a patch outside":       {"apply_patch", patch("*** Add File: a", "+x", "*** Update File: /etc/b", "+x"), "/etc/b", false},
		"a patch that moves":    {"apply_patch", patch("*** Update File: a", "*** Move to: ../b"), "../b", false},
		"a patch that deletes":  {"apply_patch", patch("*** Delete File: ../c"), "../c", false},
		"a patch of its text":   {"apply_patch", patch("*** Update File: a", "+*** Delete File: ../c", " *** Delete File: ../c"), "", true},
		"nothing that is known": {"Write", map[string]any{"path": "/etc/a"}, "", false},
	} {
		for _, refuseOnly := range []bool{false, true} {
			question, err := json.Marshal(map[string]any{"tool_name": test.tool, "cwd": work, "tool_input": test.input})
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := (shellrules.Rules{Write: []string{work}}).Hook(strings.NewReader(string(question)), &out, refuseOnly); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			refused := strings.Contains(out.String(), `"permissionDecision":"deny"`) && strings.Contains(out.String(), test.refuse+" is not below "+work)
			leave := strings.Contains(out.String(), `"permissionDecision":"allow"`)
			if test.refuse == "" && leave != (test.leave && !refuseOnly) || test.refuse == "" && !leave && out.String() != "" || test.refuse != "" && !refused {
				t.Errorf("%s: got answer %q", name, out.String())
			}
		}
	}
}
