package proc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLookPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"first/tool": 0o644, "second/tool": 0o755, "here": 0o755, "plain": 0o644} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=/nonexistent", "PATH=" + filepath.Join(dir, "first") + ":.::" + filepath.Join(dir, "second")}
	tests := map[string]struct {
		name string
		want string
		err  error
	}{
		"second directory, the first is not executable": {name: "tool", want: "second/tool"},
		"relative to the directory":                     {name: "./here", want: "here"},
		"absolute":                                      {name: filepath.Join(dir, "here"), want: "here"},
		"never the current directory":                   {name: "here", err: os.ErrNotExist},
		"nowhere":                                       {name: "nothing", err: os.ErrNotExist},
		"not executable":                                {name: "./plain", err: os.ErrPermission},
		"a directory":                                   {name: "./first", err: os.ErrPermission},
		"missing file":                                  {name: "./missing", err: os.ErrNotExist},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := lookPath(Command{Argv: []string{test.name}, Env: env, Dir: dir})
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err == nil && got != filepath.Join(dir, test.want) {
				t.Errorf("found %s, want %s", got, test.want)
			}
		})
	}
}
