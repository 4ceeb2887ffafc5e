package mutants

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

// repair explains how to fix an entry that no longer matches the source.
const repair = "If you changed that code, change the entry: `old` is a text that occurs once in the file, `new` does the same, but has the bug where mutant holds. " +
	"If the code was removed, remove the entry."

var mutantWord = regexp.MustCompile(`\bmutant\b`)

// plant returns the changed text of every file that the table names, with all mutants in it, and all errors of the
// table. read returns a file of the source tree.
func plant(table string, list []Mutant, read func(path string) (string, error)) (map[string]string, error) {
	type piece struct {
		from, to int
		text, id string
	}
	var errs []error
	pieces, known := map[string][]piece{}, map[string]bool{}
	for _, m := range list {
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s:%d: mutant %s (%s): "+format, append([]any{table, m.line, m.ID, m.Bug}, args...)...))
		}
		if known[m.ID] || len(m.Edits) == 0 || len(m.Want) == 0 && m.Open == "" && m.Test == "" {
			wrong("a mutant needs a unique ID, an edit, and either a complaint, a test, or the reason why it is open")
		}
		known[m.ID] = true
		if !slices.ContainsFunc(m.Edits, func(e Edit) bool { return mutantWord.MatchString(e.New) }) {
			wrong("no new contains the condition mutant")
		}
		for _, e := range m.Edits {
			source, err := read(e.File)
			switch n := strings.Count(source, e.Old); {
			case err != nil:
				wrong("%v. %s", err, repair)
			case e.Old == "" || n != 1:
				wrong("`%s` is in %s %d times, want once. %s", e.Old, e.File, n, repair)
			default:
				at := strings.Index(source, e.Old)
				planted := mutantWord.ReplaceAllString(e.New, "mutant("+strconv.Quote(m.ID)+")")
				pieces[e.File] = append(pieces[e.File], piece{at, at + len(e.Old), planted, m.ID})
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
				errs = append(errs, fmt.Errorf("%s: the mutants %s and %s change the same text of %s", table, list[i-1].id, p.id, file))
				continue
			}
			text.WriteString(source[done:p.from] + p.text)
			done = p.to
		}
		out[file] = text.String() + source[done:]
		if _, err := parser.ParseFile(token.NewFileSet(), file, out[file], parser.SkipObjectResolution); err != nil {
			errs = append(errs, fmt.Errorf("%s: cannot be parsed with its mutants: %w", file, err))
		}
	}
	return out, errors.Join(errs...)
}

// A Table holds the mutants of one test package, and the text of the source files that they change.
type Table struct {
	Mutants []Mutant
	Changed map[string]string // by path in the source tree
	top     string            // of the source tree
}

// Load reads a table and applies it to the source tree at top, both relative to the package under test. The test fails
// if an entry does not match.
func Load(t *testing.T, file, top string) Table {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list, err := parse(file, string(data))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := plant(file, list, func(path string) (string, error) {
		data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(path)))
		return string(data), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return Table{list, changed, top}
}
