package secretscan

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// longKey imitates a private key: many lines, with the same beginning as every other key.
func longKey(salt int) string {
	var b strings.Builder
	b.WriteString("-----BEGIN RSA PRIVATE KEY-----\n")
	for i := range 25 {
		fmt.Fprintf(&b, "%x\n", sha256.Sum256([]byte{byte(i), byte(salt)}))
	}
	b.WriteString("-----END RSA PRIVATE KEY-----\n")
	return b.String()
}

// TestKnownWhole finds each form of long values from its first byte to its last, and no form without its last byte,
// even if other forms share its beginning.
func TestKnownWhole(t *testing.T) {
	t.Parallel()
	values := []string{longKey(1), longKey(2), "the-same-twenty-four-bytes-and-one", "the-same-twenty-four-bytes-and-another", "the-same-twenty-four-byte", "the-same-twenty-four-byt"}
	all := newKnownSet(values)
	for i, value := range values {
		alone := newKnownSet([]string{value})
		for n, form := range encodedForms(strings.TrimSpace(value)) {
			want := []Finding{{Rule: RuleKnown, Start: 2, End: 2 + len(form)}}
			if diff := cmp.Diff(want, joinOverlapping(all.find("> "+form+" <"))); diff != "" {
				t.Fatalf("value %d, form %d, among others (-want +got):\n%s", i, n, diff)
			}
			cut := form[:len(form)-1]
			for _, f := range alone.find("> " + cut + "~") {
				if f.End > 2+len(cut) {
					t.Errorf("got value %d, form %d: found %v without its last byte", i, n, f)
				}
			}
		}
	}
}

// TestKnownMatchesNaiveSearch compares the search with a naive search for each form.
func TestKnownMatchesNaiveSearch(t *testing.T) {
	t.Parallel()
	values := []string{longKey(3), "aaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaab"}
	text := strings.Repeat("a", 70) + "b " + longKey(3) + " " + encodedForms(strings.TrimSpace(longKey(3)))[1] + longKey(4)
	var looked []Finding
	for _, value := range values {
		for _, form := range encodedForms(strings.TrimSpace(value)) {
			for at := range text {
				if strings.HasPrefix(text[at:], form) {
					looked = append(looked, Finding{Rule: RuleKnown, Start: at, End: at + len(form)})
				}
			}
		}
	}
	found := newKnownSet(values).find(text)
	if len(found) == 0 {
		t.Fatal("got no findings")
	}
	if diff := cmp.Diff(joinOverlapping(looked), joinOverlapping(found)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func BenchmarkNewWithKey(b *testing.B) {
	key := longKey(5)
	b.ReportAllocs()
	for b.Loop() {
		New(nil, key)
	}
}
