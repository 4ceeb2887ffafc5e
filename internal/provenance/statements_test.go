package provenance

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// TestUnreadCommentsAreNotGone: a statement beyond the comments that are read is unknown, and one that is not there is no longer visible.
func TestUnreadCommentsAreNotGone(t *testing.T) {
	t.Parallel()
	for partly, want := range map[bool]string{false: "statement: no longer visible", true: "statement: unknown"} {
		x := newChain(1, 1)
		x.gh.partly = partly
		r, err := Verify(t.Context(), x.gh, 8, nil)
		if err != nil || flaws(r) != want || r.Result != ChainUnknown {
			t.Errorf("partly %v: got %q, %v: %+v", partly, r.Result, err, r.Links)
		}
	}
}

// TestOneOfSeveralStatements: the newest statement with a trusted signature counts, wherever others are.
func TestOneOfSeveralStatements(t *testing.T) {
	t.Parallel()
	x := newChain(1, 1)
	x.verify(t)
	genuine := x.gh.statement[0]
	forged := newChain(1, 1)
	forged.task.PR.Number = 9
	forged.verify(t)
	other := forged.gh.statement[0]
	other.CreatedAt = day1.Add(time.Hour)
	e, ok := Find(genuine.Body)
	if !ok {
		t.Fatal("no statement")
	}
	p, err := read(e)
	if err != nil {
		t.Fatal(err)
	}
	key, err := namedKey(p.Deployment)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := e.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	changed := genuine
	changed.Body = strings.Replace(genuine.Body, e.Payload, base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(string(payload), `"ada"`, `"eve"`))), 1)
	stranger := genuine
	stranger.By.ID++
	for name, c := range map[string]struct {
		list []Text
		want string
	}{
		"alone":              {[]Text{genuine}, ""},
		"before a newer one": {[]Text{genuine, other}, ""},
		"after a newer one":  {[]Text{other, genuine}, ""},
		"changed later":      {[]Text{genuine, changed}, ""},
		"by another App":     {[]Text{stranger, genuine}, ""},
		"only a forged one":  {[]Text{other}, "signature: altered"},
		"only a changed one": {[]Text{changed}, "signature: altered"},
		"only a stranger's":  {[]Text{stranger}, "statement: no longer visible"},
	} {
		x.gh.statement = c.list
		if r, err := Verify(t.Context(), x.gh, 8, []Key{key}); err != nil || flaws(r) != c.want || (r.Result == ChainHolds) != (c.want == "") {
			t.Errorf("%s: got %q, %v, want %q: %+v", name, flaws(r), err, c.want, r.Links)
		}
	}
}

// TestSubjectIsTheHead: a statement whose subject is not what was published last is none.
func TestSubjectIsTheHead(t *testing.T) {
	t.Parallel()
	const frame = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"x","digest":{"gitCommit":"%s","gitTree":"%s"}}],"predicateType":"%s",` +
		`"predicate":{"publications":[{"headCommit":"%s","tree":"%s"}]}}`
	a, b, c := hex40(1), hex40(2), hex40(3)
	for subject, want := range map[[3]string]bool{{a, b, PredicateType}: true, {c, b, PredicateType}: false, {a, c, PredicateType}: false, {a, b, "other"}: false} {
		payload := fmt.Sprintf(frame, subject[0], subject[1], subject[2], a, b)
		_, err := read(&dsse.Envelope{PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString([]byte(payload))})
		if (err == nil) != want {
			t.Errorf("%v: got %v", subject, err)
		}
	}
}
