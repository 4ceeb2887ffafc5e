package walk

import (
	"cmp"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	mutantsFile = "testdata/mutants.txt"
	top         = "../.." // of the source tree
)

// A mutant is a bug that is planted in the product's source when a test binary is built, and nowhere else.
type mutant struct {
	id, class, bug string
	edits          []edit
	want           []string // what the complaint is about, one of these
	acts           string   // what is done more often than else
	open           string   // why no walk notices it yet
	line           int
}

// An edit replaces a piece of a file. In new, the word mutant stands for a condition that holds while the mutant is
// played; where it does not hold, new does what old does.
type edit struct{ file, old, new string }

// readMutants reads the table. The format stands at its top.
func readMutants(data string) ([]mutant, error) {
	var list []mutant
	for i, line := range strings.Split(data, "\n") {
		key, value, _ := strings.Cut(line, " ")
		value = strings.TrimSpace(value)
		if key == "" || key == "#" {
			continue
		}
		if key == "bug" {
			words := strings.SplitN(value, " ", 3)
			if len(words) < 3 || words[1] != "2" && words[1] != "3" {
				return nil, fmt.Errorf("%s:%d: want `bug ID CLASS WORDS`, with a class of 2 or 3", mutantsFile, i+1)
			}
			list = append(list, mutant{id: words[0], class: words[1], bug: words[2], line: i + 1})
			continue
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s:%d: a bug begins with `bug`", mutantsFile, i+1)
		}
		if err := list[len(list)-1].set(key, value); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", mutantsFile, i+1, err)
		}
	}
	return list, nil
}

func (m *mutant) set(key, value string) error {
	if key == "file" {
		m.edits = append(m.edits, edit{file: value})
		return nil
	}
	last := &edit{}
	if n := len(m.edits); n > 0 {
		last = &m.edits[n-1]
	} else if key == "old" || key == "new" {
		return fmt.Errorf("%s: name the file first", m.id)
	}
	switch key {
	case "old":
		last.old = value
	case "new":
		last.new = value
	case "want":
		m.want = strings.Fields(value)
	case "acts":
		m.acts = value
	case "open":
		m.open = value
	default:
		return fmt.Errorf("%s: no such key: %q", m.id, key)
	}
	return nil
}

// repair is what to do about an entry that does not fit the source any more.
const repair = "If you changed that code, change the entry: `old` is a piece of the file that is there once, `new` does the same, and the bug where mutant holds. " +
	"If the code is gone, take the entry away."

var mutantWord = regexp.MustCompile(`\bmutant\b`)

// mutate returns the changed text of every file that the table names, with all mutants in it, and all that is wrong with
// the table. read returns a file of the source tree.
func mutate(list []mutant, read func(path string) (string, error)) (map[string]string, error) {
	type piece struct {
		from, to int
		text, id string
	}
	var errs []error
	pieces, known := map[string][]piece{}, map[string]bool{}
	for _, m := range list {
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s:%d: mutant %s (%s): "+format, append([]any{mutantsFile, m.line, m.id, m.bug}, args...)...))
		}
		if known[m.id] || len(m.edits) == 0 || len(m.want) == 0 && m.open == "" {
			wrong("every mutant has an id of its own, an edit, and what the walks say of it, or why they do not")
		}
		known[m.id] = true
		if !slices.ContainsFunc(m.edits, func(e edit) bool { return mutantWord.MatchString(e.new) }) {
			wrong("no new says where mutant holds")
		}
		for _, e := range m.edits {
			source, err := read(e.file)
			switch n := strings.Count(source, e.old); {
			case err != nil:
				wrong("%v. %s", err, repair)
			case e.old == "" || n != 1:
				wrong("`%s` is in %s %d times, want once. %s", e.old, e.file, n, repair)
			default:
				at := strings.Index(source, e.old)
				pieces[e.file] = append(pieces[e.file], piece{at, at + len(e.old), mutantWord.ReplaceAllString(e.new, "mutant("+strconv.Quote(m.id)+")"), m.id})
			}
		}
	}
	out := map[string]string{}
	for _, file := range slices.Sorted(maps.Keys(pieces)) {
		list := slices.SortedFunc(slices.Values(pieces[file]), func(a, b piece) int { return cmp.Compare(a.from, b.from) })
		source, _ := read(file)
		var text strings.Builder
		done := 0
		for i, p := range list {
			if p.from < done {
				errs = append(errs, fmt.Errorf("%s: the mutants %s and %s change the same piece of %s", mutantsFile, list[i-1].id, p.id, file))
				continue
			}
			text.WriteString(source[done:p.from] + p.text)
			done = p.to
		}
		out[file] = text.String() + source[done:]
		if _, err := parser.ParseFile(token.NewFileSet(), file, out[file], parser.SkipObjectResolution); err != nil {
			errs = append(errs, fmt.Errorf("%s: with its mutants it cannot be parsed: %w", file, err))
		}
	}
	return out, errors.Join(errs...)
}

func readSource(path string) (string, error) {
	data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(path)))
	return string(data), err
}

// mutants reads the table and applies it.
func mutants(t *testing.T) ([]mutant, map[string]string) {
	t.Helper()
	data, err := os.ReadFile(mutantsFile)
	if err != nil {
		t.Fatal(err)
	}
	list, err := readMutants(string(data))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := mutate(list, readSource)
	if err != nil {
		t.Fatal(err)
	}
	return list, changed
}

// TestMutantsFitTheSource keeps the table from rotting: it also runs where no mutant is played.
func TestMutantsFitTheSource(t *testing.T) {
	t.Parallel()
	list, changed := mutants(t)
	t.Logf("%d mutants in %d files", len(list), len(changed))
}

// TestMutantsThatDoNotFitAreExplained: who changes a line that the table names is told which, and what to do.
func TestMutantsThatDoNotFitAreExplained(t *testing.T) {
	t.Parallel()
	const source = "package a\n\nfunc f(x int) bool { return x > 1 }\n\nfunc g(x int) bool { return x > 2 }\n"
	const good = "bug M1 3 it is too eager\nfile a.go\nold x > 1\nnew x > 1 || mutant\nwant moves\n"
	for name, test := range map[string]struct{ table, want string }{
		"it fits":                  {good, ""},
		"two places, one of use":   {good + "file a.go\nold func g\nnew func g\n", ""},
		"not played, with a cause": {"bug M1 3 b\nfile a.go\nold x > 1\nnew x > 1 || mutant\nopen nobody looks\n", ""},
		"the line was changed": {
			"# comment\n\nbug M1 3 it is too eager\nfile a.go\nold x >= 1\nnew x >= 1 || mutant\nwant moves\n",
			"testdata/mutants.txt:3: mutant M1 (it is too eager): `x >= 1` is in a.go 0 times, want once. If you changed that code, change the entry",
		},
		"the line is there twice": {"bug M1 3 b\nfile a.go\nold (x int) bool\nnew (x int) bool\nwant moves\n", "`(x int) bool` is in a.go 2 times, want once. If you"},
		"the file is gone":        {"bug M1 3 b\nfile b.go\nold x\nnew mutant\nwant moves\n", "mutant M1 (b): open b.go: file does not exist. If you"},
		"nothing is planted":      {"bug M1 3 b\nfile a.go\nold x > 1\nnew x > 3\nwant moves\n", "no new says where mutant holds"},
		"it is no Go":             {"bug M1 3 b\nfile a.go\nold x > 1\nnew x > || mutant\nwant moves\n", "a.go: with its mutants it cannot be parsed"},
		"the same id twice":       {good + good, "every mutant has an id of its own"},
		"two of one piece":        {good + "bug M2 3 b\nfile a.go\nold return x > 1\nnew return mutant\nwant moves\n", "the mutants M2 and M1 change the same piece of a.go"},
		"nobody notices it":       {"bug M1 3 b\nfile a.go\nold x > 1\nnew x > 1 || mutant\n", "what the walks say of it, or why they do not"},
		"no class":                {"bug M1 it is too eager\n", "want `bug ID CLASS WORDS`"},
		"an unknown key":          {good + "wants moves\n", `testdata/mutants.txt:6: M1: no such key: "wants"`},
		"no bug":                  {"file a.go\n", "a bug begins with `bug`"},
		"no file":                 {"bug M1 3 b\nold x\n", "name the file first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := readMutants(test.table)
			if err == nil {
				_, err = mutate(list, func(path string) (string, error) {
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
