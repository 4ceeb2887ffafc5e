package transcript

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/runlog"
)

// FuzzParts reads arbitrary bytes as a transcript, from any offset, forward and backward: reading ends, shows each
// complete line once, and never exceeds the text limit of a page.
func FuzzParts(f *testing.F) {
	f.Add([]byte("{\"version\":1}\n{\"line\":{\"seq\":1,\"stream\":\"stderr\",\"text\":\"x\"}}\n{\"end\":{\"exit_cause\":\"exited\",\"exit_class\":\"fatal\"}}\n"), int64(3))
	f.Add([]byte("\n\n{\"events\":[{\"kind\":\"tool_use\",\"input\":\"\\ud800\"},{\"kind\":\"retry\",\"delay\":-5}]}\ntorn"), int64(99))
	f.Fuzz(func(t *testing.T, data []byte, from int64) {
		path := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		size := int64(len(data))
		for range len(data) + 2 {
			p, err := ReadPart(file, from)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range p.Items {
				if utf8.RuneCountInString(it.Text) > runlog.ShownLength || it.From < 0 || it.From >= size {
					t.Fatalf("got item %+v", it)
				}
			}
			before, err := Back(file, p.From, PageRecords)
			if err != nil || before > p.From || p.From > 0 && before == p.From {
				t.Fatalf("offset before %d: got %d: %v", p.From, before, err)
			}
			if p.Next < p.From || p.Next > size {
				t.Fatalf("part %d to %d of %d", p.From, p.Next, size)
			}
			if !p.After() {
				return
			}
			from = p.Next
		}
		t.Error("the parts never end")
	})
}
