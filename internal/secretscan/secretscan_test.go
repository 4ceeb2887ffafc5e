package secretscan

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loadOnce shares the library among the tests, because compiling it is slow.
var loadOnce = sync.OnceValues(LoadPatterns)

func patterns(t testing.TB) *Patterns {
	t.Helper()
	p, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Tokens are assembled here so that the repository itself contains none.
func ghToken(kind string) string { return kind + strings.Repeat("aB3dE6gH9", 4) }

func statelessToken() string {
	return "ghs" + "_1234567_eyJhbGciOiJSUzI1NiJ9." + strings.Repeat("eyJpc3MiOjF9x_-", 20) + ".sig-_" + strings.Repeat("Zz09", 30)
}

func TestFind(t *testing.T) {
	t.Parallel()
	aws := "AKIA" + "Z7Q3LMN5RST2UVWX"
	pem := "-----BEGIN RSA PRIVATE " + "KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEAx1y2z3\n", 6) + "-----END RSA PRIVATE " + "KEY-----"
	tests := map[string]struct {
		path, text string
		want       []string // rule:secret
	}{
		"nothing":                    {text: "a plain sentence about tokens and keys"},
		"empty":                      {},
		"classic installation token": {text: "use " + ghToken("ghs_") + " now", want: []string{"github-token:" + ghToken("ghs_")}},
		"stateless token, whole":     {text: "x=" + statelessToken() + "\n", want: []string{"github-token:" + statelessToken()}},
		"personal token":             {text: ghToken("ghp_"), want: []string{"github-token:" + ghToken("ghp_")}},
		"too short to be a token":    {text: "ghs_abc"},
		"fine-grained":               {text: "github_pat_" + strings.Repeat("A1b2", 20), want: []string{"github-fine-grained-token:" + "github_pat_" + strings.Repeat("A1b2", 20)}},
		"aws key":                    {text: "aws_access_key_id = " + aws, want: []string{"aws-access-token:" + aws}},
		"pem block":                  {text: "key:\n" + pem + "\nend", want: []string{"private-key-block:" + pem}},
		"an allow remark is ignored": {text: ghToken("gho_") + " # gitleaks:" + "allow", want: []string{"github-token:" + ghToken("gho_")}},
		"password in a url":          {text: "https://bob:" + "t0p-S3cr1t_9xQ@example.org/x.git", want: []string{"url-password:t0p-S3cr1t_9xQ"}},
		"a default password":         {text: "postgres://postgres:" + "postgres@localhost:5432/db"},
		"url with a variable":        {text: "https://bob:${PASSWORD}@example.org/x.git"},
		"own rules in a lock file":   {path: "go.sum", text: ghToken("ghs_"), want: []string{"github-token:" + ghToken("ghs_")}},
		"library rule, lock file":    {path: "go.sum", text: aws},
		"token of a run":             {text: "http://errand:errand-" + strings.Repeat("0a1b", 16) + "@127.0.0.1", want: []string{"errand-token:errand-" + strings.Repeat("0a1b", 16)}},
		"name of a VM":               {text: "errand-demo-1009-1-" + strings.Repeat("0a1b", 4) + "-g1"},
		"binary has no patterns":     {text: "\x00" + ghToken("ghs_")},
	}
	scanner := New(patterns(t))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range scanner.FindIn(tc.path, tc.text) {
				got = append(got, f.Rule+":"+tc.text[f.Start:f.End])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKnownValues(t *testing.T) {
	t.Parallel()
	const secret = `p4ss "wörd"/+key`
	scanner := New(nil, secret, "short", " padded-value-1 \n")
	tests := map[string]struct {
		text string
		want int
	}{
		"as it is":               {"a " + secret + " b", 1},
		"twice":                  {secret + secret, 2},
		"in json":                {`{"k":"p4ss \"wörd\"/+key"}`, 1},
		"in a query":             {"?k=" + url.QueryEscape(secret), 1},
		"in a path":              {"/" + url.PathEscape(secret), 1},
		"hex":                    {hex.EncodeToString([]byte(secret)), 1},
		"base64":                 {base64.StdEncoding.EncodeToString([]byte(secret)), 1},
		"base64 after one byte":  {base64.StdEncoding.EncodeToString([]byte("x" + secret + "yz")), 1},
		"base64 after two bytes": {base64.StdEncoding.EncodeToString([]byte("xy" + secret + "z")), 1},
		"base64 url":             {base64.URLEncoding.EncodeToString([]byte("abc" + secret)), 1},
		"in a binary":            {"\x00\x01" + secret, 1},
		"trimmed when given":     {"padded-value-1", 1},
		"short values are words": {"short and sweet", 0},
		"nearly":                 {secret[:len(secret)-1], 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := scanner.Find(tc.text)
			if len(got) != tc.want {
				t.Fatalf("found %v, want %d", got, tc.want)
			}
			for _, f := range got {
				if !f.Known() {
					t.Errorf("rule %s, want %s", f.Rule, RuleKnown)
				}
			}
		})
	}
}

func TestKnownPEMIsFoundByItsLines(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN KEY-----\nQmFzZTY0bGluZW9uZQ0123\nQmFzZTY0bGluZXR3bw4567\n-----END KEY-----\n"
	scanner := New(nil, key)
	if got := scanner.Find("log: QmFzZTY0bGluZXR3bw4567"); len(got) != 1 {
		t.Errorf("found %v, want the second line", got)
	}
	if got := scanner.Find("-----BEGIN KEY-----"); len(got) != 0 {
		t.Errorf("bare header: got findings %v", got)
	}
}

func TestOverlapsAreJoined(t *testing.T) {
	t.Parallel()
	token := ghToken("ghs_")
	got := New(patterns(t), token[10:30], token[25:]).Find("x " + token)
	want := []Finding{{Rule: RuleKnown, Start: 2, End: 2 + len(token)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	text := "one\ntwo\nthree"
	for start, want := range map[int]int{0: 1, 3: 1, 4: 2, 8: 3} {
		if got := (Finding{Start: start}).Line(text); got != want {
			t.Errorf("line of byte %d = %d, want %d", start, got, want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	scanner := New(patterns(t), "known-value-0001")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			text := fmt.Sprintf("%d %s known-value-0001", i, ghToken("ghu_"))
			if got := scanner.Find(text); len(got) != 2 {
				t.Errorf("got findings %v", got)
			}
		})
	}
	group.Wait()
}

func FuzzFind(f *testing.F) {
	f.Add("", "token = "+ghToken("ghs_"))
	f.Add("go.mod", "\x00\xff known-value-0001")
	f.Add("a.pem", "-----BEGIN PRIVATE "+"KEY-----\nabc")
	scanner := New(patterns(f), "known-value-0001")
	f.Fuzz(func(t *testing.T, path, text string) {
		end := 0
		for _, found := range scanner.FindIn(path, text) {
			if found.Start < end || found.End <= found.Start || found.End > len(text) {
				t.Fatalf("got finding %+v after byte %d of %d", found, end, len(text))
			}
			end = found.End
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := LoadPatterns(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLine(b *testing.B) {
	scanner := New(patterns(b), "known-value-0001")
	lines := map[string]string{
		"plain":   `ok   github.com/example/thing/parser  0.213s  coverage: 81.2% of statements in the whole module`,
		"keyword": `2026-11-21T13:00:00Z INF api request done key=status path=/v1/messages token_count=1234 took=812ms`,
	}
	for name, line := range lines {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				scanner.Find(line)
			}
		})
	}
}

func BenchmarkMegabyte(b *testing.B) {
	scanner := New(patterns(b), "known-value-0001")
	text := strings.Repeat("func handle(key string, token int) error { return api.Call(key, token) }\n", 14000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		scanner.Find(text)
	}
}
