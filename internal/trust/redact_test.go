package trust

import (
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/secretscan"
)

var loadOnce = sync.OnceValues(secretscan.LoadPatterns)

const knownSecret = "correct-horse-battery"

func redactor(t testing.TB, known ...string) *Redactor {
	t.Helper()
	patterns, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return NewRedactor(patterns, append([]string{knownSecret}, known...)...)
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

// TestCutTexts: wherever a text is cut, no significant part of a secret remains at the cut.
func TestCutTexts(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("MIIEpAIBAAKCAQEAx1y2z3", 3)
	pem := "-----BEGIN RSA PRIVATE " + "KEY-----\n" + strings.Repeat(line+"\n", 8) + "-----END RSA PRIVATE " + "KEY-----"
	known := "known-" + strings.Repeat("k7", 40)
	learned := "learned-" + strings.Repeat("q3", 20)
	r := redactor(t, known)
	r.Learn(learned)
	tests := map[string]struct {
		secret     string
		head, tail int // bytes of the secret that may remain before a cut, and after one
	}{
		"known":           {known, 11, 11},
		"known, in hex":   {hex.EncodeToString([]byte(known)), 11, 11},
		"learned":         {learned, 11, 11},
		"a token":         {fakeToken(), 11, len(fakeToken())}, // the end of one is not recognizable
		"a key":           {pem, len("-----BEGIN RSA PRIVATE "+"KEY-----") + 41, len("-----END RSA PRIVATE "+"KEY-----") + 1},
		"a key in JSON":   {strings.ReplaceAll(pem, "\n", `\n`), len("-----BEGIN RSA PRIVATE "+"KEY-----") + 42, len("-----END RSA PRIVATE "+"KEY-----") + 2},
		"a short one":     {knownSecret, 11, 11},
		"a line of a key": {line, len(line), len(line)}, // alone it is an ordinary word
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := 1; cut < len(tc.secret); cut++ {
				for part, text := range map[string]string{tc.secret[:cut]: "before " + tc.secret[:cut], tc.secret[cut:]: tc.secret[cut:] + " after"} {
					most := tc.head
					if strings.HasSuffix(text, " after") {
						most = tc.tail
					}
					if got, _ := r.Redact(text); len(part) > most && strings.Contains(got, part) {
						t.Fatalf("cut at %d: %q is left in %q", cut, part, got)
					}
				}
			}
		})
	}
	for _, text := range []string{"", "k", "the end is known-", "an errand-", "-----BEGIN PRIVATE " + "KEY-----", "ordinary words, without anything secret"} {
		if got, n := r.Redact(text); got != text || n != 0 {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestLinesEndAfterAKey(t *testing.T) {
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

func BenchmarkRedactLine(b *testing.B) {
	r := redactor(b)
	line := "ok   github.com/example/thing/parser  0.213s  coverage: 81.2% of statements"
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		r.Redact(line)
	}
}
