package work

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/quick"
)

// words returns the words that a shell reads in a command line.
func words(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", `for w in `+line+`; do printf '%s\0' "$w"; done`).Output()
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// asShellReads returns a name as a command receives it: never as an option.
func asShellReads(name string) string {
	if strings.HasPrefix(name, "-") {
		return "./" + name
	}
	return name
}

func TestFillPlaceholders(t *testing.T) {
	t.Parallel()
	d := difference{files: []string{"it's", "-rf", "two\nlines", "$(touch pwned)", PlaceModules, `"\`}, modules: []string{".", "a b"}}
	for name, test := range map[string]struct {
		d       difference
		command string
		want    []string
		skipped string
	}{
		"files":               {d: d, command: PlaceFiles, want: []string{"it's", "./-rf", "two\nlines", "$(touch pwned)", PlaceModules, `"\`}},
		"modules":             {d: d, command: PlaceModules, want: []string{".", "a b"}},
		"both":                {d: d, command: PlaceModules + " | " + PlaceModules, want: []string{".", "a b", "|", ".", "a b"}},
		"no file":             {d: difference{modules: []string{"."}}, command: "lint " + PlaceFiles, skipped: "no changed file still exists"},
		"no module":           {d: difference{files: []string{"a"}}, command: "test " + PlaceModules + " " + PlaceFiles, skipped: "no module is affected"},
		"nothing is asked of": {command: "test", want: []string{"test"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			filled, skipped := test.d.fillPlaceholders(test.command)
			if skipped != test.skipped {
				t.Fatalf("skipped is %q, want %q", skipped, test.skipped)
			}
			if test.want == nil {
				return
			}
			if got := words(t, strings.ReplaceAll(filled, " | ", ` "|" `)); !slices.Equal(got, test.want) {
				t.Errorf("a shell reads %q, want %q", got, test.want)
			}
		})
	}
}

// Whatever a file is called, a shell reads its name and nothing else.
func TestQuotedNamesAreReadLiterally(t *testing.T) {
	t.Parallel()
	same := func(names []string) bool {
		names = slices.DeleteFunc(names, func(n string) bool { return n == "" || strings.Contains(n, "\x00") })
		if len(names) == 0 {
			return true
		}
		want := make([]string, len(names))
		for i, n := range names {
			want[i] = asShellReads(n)
		}
		return slices.Equal(words(t, quoteNames(names)), want)
	}
	if err := quick.Check(same, &quick.Config{MaxCount: 60}); err != nil {
		t.Error(err)
	}
}

// FuzzQuoted is the same for names that a fuzzer thinks of.
func FuzzQuoted(f *testing.F) {
	for _, n := range []string{"a", "it's", "-x", "$(id)", "`id`", "a\nb", `\`, "'; id; '", "{changed_files}", "*", "~", "\xff"} {
		f.Add(n)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || strings.Contains(name, "\x00") {
			t.Skip("no file is called that")
		}
		if got := words(t, quoteNames([]string{name, name})); !slices.Equal(got, []string{asShellReads(name), asShellReads(name)}) {
			t.Errorf("a shell reads %q of %q", got, name)
		}
	})
}
