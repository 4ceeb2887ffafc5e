package trust

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func update() bool { return flag.Lookup("update").Value.String() == "true" }

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	os.Exit(m.Run())
}

// golden compares with a file under testdata, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if update() {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestStripGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/strip/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("inputs: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out, stripped := Strip(string(in))
			var got strings.Builder
			got.WriteString(out + "\n-- stripped --\n")
			for _, s := range stripped {
				fmt.Fprintf(&got, "%d × %s: %s\n", s.Count, s.Kind, s.Sample)
			}
			golden(t, strings.TrimSuffix(file, ".md")+".golden", got.String())
			if again, more := Strip(out); again != out || more != nil {
				t.Errorf("stripping twice changes it:\n%s\nstripped %v", cmp.Diff(out, again), more)
			}
		})
	}
}

func TestStripLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in, want string
		kinds    []Kind
	}{
		"plain":     {in: "Crash on start", want: "Crash on start"},
		"literal":   {in: "Remove <!-- marker --> from `x`", want: "Remove <!-- marker --> from `x`"},
		"invisible": {in: "Cr\u200bash\u202e", want: "Crash", kinds: []Kind{KindInvisible}},
		"tags":      {in: "Crash\U000E0041\U000E0042", want: "Crash", kinds: []Kind{KindTagCharacters}},
		"line ends": {in: "Crash\r\non\nstart ", want: "Crash on start"},
		"not UTF-8": {in: "Cr\xffash", want: "Cr\uFFFDash"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, stripped := StripLine(tc.in)
			var kinds []Kind
			for _, s := range stripped {
				kinds = append(kinds, s.Kind)
			}
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.kinds, kinds); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStripLimits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", maxStripBytes/5+100)
	out, stripped := Strip(long)
	if len(out) > maxStripBytes || len(stripped) != 1 || stripped[0].Kind != KindUnclean {
		t.Errorf("%d bytes, stripped %v", len(out), stripped)
	}
	nested := strings.Repeat("<!<!-- x -->-", 200) + strings.Repeat("->", 200)
	out, _ = Strip(nested)
	if again, _ := Strip(out); again != out {
		t.Error("deep nesting is not stable")
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	got := Join([]Stripped{{KindComment, 1, "a"}}, nil, []Stripped{{KindInvisible, 2, ""}, {KindComment, 3, "b"}})
	want := []Stripped{{KindComment, 4, "a"}, {KindInvisible, 2, ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStrippedString(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Stripped{
		"2 × secret":                          {KindSecret, 2, ""},
		"1 × HTML comment: `<!-- @all ' -->`": {KindComment, 1, "<!-- @all ` -->"},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func BenchmarkStrip(b *testing.B) {
	in, err := os.ReadFile("testdata/strip/plain.md")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(in)+"\n\n", 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Strip(text)
	}
}
