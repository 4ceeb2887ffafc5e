package mutants

import (
	"os"
	"strings"
	"testing"
)

// TestMismatchedMutantsAreExplained: if an entry does not match the source, the error names it and explains how to fix
// it.
func TestMismatchedMutantsAreExplained(t *testing.T) {
	t.Parallel()
	const table = "testdata/mutants.txt"
	const source = "package a\n\nfunc f(x int) bool { return x > 1 }\n\nfunc g(x int) bool { return x > 2 }\n"
	const good = "bug M1 3 it is too eager\nfile a.go\nold x > 1\nnew x > 1 || mutant\nwant moves\n"
	for name, test := range map[string]struct{ table, want string }{
		"it fits":                           {good, ""},
		"two edits, one with the condition": {good + "file a.go\nold func g\nnew func g\n", ""},
		"open, with a reason":               {"bug M1 3 b\nfile a.go\nold x > 1\nnew x > 1 || mutant\nopen not checked yet\n", ""},
		"the line was changed": {
			"# comment\n\nbug M1 3 it is too eager\nfile a.go\nold x >= 1\nnew x >= 1 || mutant\nwant moves\n",
			"testdata/mutants.txt:3: mutant M1 (it is too eager): `x >= 1` is in a.go 0 times, want once. If you changed that code, change the entry",
		},
		"the line is there twice":      {"bug M1 3 b\nfile a.go\nold (x int) bool\nnew (x int) bool\nwant moves\n", "`(x int) bool` is in a.go 2 times, want once. If you"},
		"the file is gone":             {"bug M1 3 b\nfile b.go\nold x\nnew mutant\nwant moves\n", "mutant M1 (b): open b.go: file does not exist. If you"},
		"no condition in new":          {"bug M1 3 b\nfile a.go\nold x > 1\nnew x > 3\nwant moves\n", "no new contains the condition mutant"},
		"not valid Go":                 {"bug M1 3 b\nfile a.go\nold x > 1\nnew x > || mutant\nwant moves\n", "a.go: cannot be parsed with its mutants"},
		"the same ID twice":            {good + good, "a mutant needs a unique ID"},
		"two edits of the same text":   {good + "bug M2 3 b\nfile a.go\nold return x > 1\nnew return mutant\nwant moves\n", "the mutants M2 and M1 change the same text of a.go"},
		"neither complaint nor reason": {"bug M1 3 b\nfile a.go\nold x > 1\nnew x > 1 || mutant\n", "either a complaint, a test, or the reason why it is open"},
		"no class":                     {"bug M1 it is too eager\n", "want `bug ID CLASS WORDS`"},
		"an unknown key":               {good + "wants moves\n", `testdata/mutants.txt:6: M1: no such key: "wants"`},
		"no bug":                       {"file a.go\n", "a bug begins with `bug`"},
		"no file":                      {"bug M1 3 b\nold x\n", "name the file first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := parse(table, test.table)
			if err == nil {
				_, err = plant(table, list, func(path string) (string, error) {
					if path != "a.go" {
						return "", &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
					}
					return source, nil
				})
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
