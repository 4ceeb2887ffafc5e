package trust

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/secretscan"
)

var loadOnce = sync.OnceValues(secretscan.LoadPatterns)

const knownSecret = "correct-horse-battery"

func redactor(t testing.TB) *Redactor {
	t.Helper()
	patterns, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return NewRedactor(patterns, knownSecret)
}

func fakeToken() string { return "ghs" + "_" + strings.Repeat("aB3dE6gH9", 4) }

func fakeKey() string {
	return "-----BEGIN RSA PRIVATE " + "KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEAx1y2z3\n", 5) + "-----END RSA PRIVATE " + "KEY-----"
}

func TestRedact(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in, want string
		n        int
	}{
		"nothing":     {"all is well", "all is well", 0},
		"empty":       {"", "", 0},
		"known":       {"pw " + knownSecret + "!", "pw [redacted: known-value]!", 1},
		"token":       {"x=" + fakeToken() + ", y", "x=[redacted: github-token], y", 1},
		"two":         {knownSecret + " " + fakeToken(), "[redacted: known-value] [redacted: github-token]", 2},
		"a key":       {"a\n" + fakeKey() + "\nb", "a\n[redacted: private-key-block]\nb", 1},
		"in a header": {"Authorization: Bearer " + fakeToken(), "Authorization: Bearer [redacted: github-token]", 1},
	}
	r := redactor(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, n := r.Redact(tc.in)
			if got != tc.want || n != tc.n {
				t.Errorf("Redact(%q) = %q, %d, want %q, %d", tc.in, got, n, tc.want, tc.n)
			}
			if again, n := r.Redact(got); again != got || n != 0 {
				t.Errorf("redacting twice: %q, %d", again, n)
			}
		})
	}
}

func TestRedactorWith(t *testing.T) {
	t.Parallel()
	first := redactor(t)
	second := first.With("per-task-value")
	text := knownSecret + " per-task-value"
	if got, _ := second.Redact(text); got != "[redacted: known-value] [redacted: known-value]" {
		t.Errorf("with the value: %q", got)
	}
	if got, _ := first.Redact(text); got != "[redacted: known-value] per-task-value" {
		t.Errorf("the first one learned it: %q", got)
	}
}

func TestRedactEndsOnAwkwardValue(t *testing.T) {
	t.Parallel()
	if got, n := NewRedactor(nil, "redacted: known").Redact("redacted: known"); n != 1 || len(got) > 200 {
		t.Errorf("%q, %d", got, n)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	lines := redactor(t).Lines()
	var got []string
	for _, line := range strings.Split("start\nkey: "+fakeKey()+"\nend "+knownSecret, "\n") {
		got = append(got, lines.Line(line))
	}
	mark := "[redacted: private-key-block]"
	want := []string{"start", "key: " + mark, mark, mark, mark, mark, mark, mark, "end [redacted: known-value]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLinesFindTheWayBack(t *testing.T) {
	t.Parallel()
	lines := redactor(t).Lines()
	lines.Line("-----BEGIN PRIVATE " + "KEY-----")
	for range maxKeyLines {
		lines.Line("never ends")
	}
	if got := lines.Line("shown again"); got != "shown again" {
		t.Errorf("after %d lines: %q", maxKeyLines, got)
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLine-20) + " " + fakeToken() + " " + strings.Repeat("y", 2*keepBack)
	tests := map[string]struct {
		parts []string
		want  string
	}{
		"cut anywhere":    {[]string{"a corr", "ect-horse-", "battery b\nc", "d\n"}, "a [redacted: known-value] b\ncd\n"},
		"no line end":     {[]string{"a " + knownSecret}, "a [redacted: known-value]"},
		"nothing":         {nil, ""},
		"an endless line": {[]string{long[:maxLine-10], long[maxLine-10:], "\n"}, strings.Replace(long, fakeToken(), "[redacted: github-token]", 1) + "\n"},
	}
	r := redactor(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w := r.Writer(&out)
			for _, part := range tc.parts {
				if n, err := w.Write([]byte(part)); err != nil || n != len(part) {
					t.Fatalf("wrote %d, %v", n, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != tc.want {
				t.Errorf("got %d bytes, want %d: %.200q", out.Len(), len(tc.want), out.String())
			}
		})
	}
}

type brokenPipe struct{}

var errPipe = errors.New("pipe is broken")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestWriterReportsErrors(t *testing.T) {
	t.Parallel()
	w := redactor(t).Writer(brokenPipe{})
	if _, err := w.Write([]byte("a\nb")); !errors.Is(err, errPipe) {
		t.Errorf("write: %v", err)
	}
	if err := w.Close(); !errors.Is(err, errPipe) {
		t.Errorf("close: %v", err)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("a "+knownSecret+"\nb", 3)
	f.Add(fakeKey()+"\nc", 40)
	r := redactor(f)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = max(0, min(at, len(text)))
		var out bytes.Buffer
		w := r.Writer(&out)
		for _, part := range []string{text[:at], text[at:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), knownSecret) {
			t.Fatalf("secret in %q", out.String())
		}
	})
}

func BenchmarkRedactLine(b *testing.B) {
	r := redactor(b)
	line := "ok   github.com/example/thing/parser  0.213s  coverage: 81.2% of statements"
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		r.Redact(line)
	}
}
