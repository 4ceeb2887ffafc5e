package modelapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seen returns the values that walk visits.
func seen(body string) []string {
	var all []string
	walk([]byte(body), func(v value) bool {
		said := string(v.Raw)
		if v.Kind == '"' {
			said = v.text()
		}
		all = append(all, fmt.Sprintf("%q in %q, %d deep: %c %s", v.Key.plain, v.Owner.plain, v.Depth, v.Kind, said))
		return v.Key.plain != "hidden"
	})
	return all
}

// decoded returns the same values as the standard library reads them.
func decoded(t *testing.T, body string) []string {
	t.Helper()
	var all []string
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	next := func() json.Token {
		tok, err := dec.Token()
		if err != nil {
			t.Fatalf("valid JSON cannot be read: %v", err)
		}
		return tok
	}
	var read func(key, owner string, depth int, hidden bool)
	read = func(key, owner string, depth int, hidden bool) {
		tell := func(kind byte, said string) {
			if !hidden {
				all = append(all, fmt.Sprintf("%q in %q, %d deep: %c %s", key, owner, depth, kind, said))
			}
		}
		switch tok := next().(type) {
		case json.Delim:
			tell(byte(tok), "")
			hidden = hidden || key == "hidden"
			for dec.More() {
				if tok == '[' {
					read(key, owner, depth, hidden)
					continue
				}
				name, _ := next().(string)
				read(name, key, depth+1, hidden)
			}
			next()
		case string:
			tell('"', tok)
		case json.Number:
			tell(tok.String()[0], tok.String())
		case bool:
			tell(fmt.Sprint(tok)[0], fmt.Sprint(tok))
		case nil:
			tell('n', "null")
		}
	}
	read("", "", 0, false)
	return all
}

// TestWalk: walk visits the values of a document in order.
func TestWalk(t *testing.T) {
	t.Parallel()
	got := seen(` {"a": [1, {"b" : "x\"}\\"}, [ -2.5e3 ]], "hidden":{"c":[{"d":1}]},"\u0061":null, "e":{} ,"f":true}`)
	want := []string{
		`"" in "", 0 deep: { `, `"a" in "", 1 deep: [ `, `"a" in "", 1 deep: 1 1`, `"a" in "", 1 deep: { `, `"b" in "a", 2 deep: " x"}\`,
		`"a" in "", 1 deep: [ `, `"a" in "", 1 deep: - -2.5e3`, `"hidden" in "", 1 deep: { `, `"a" in "", 1 deep: n null`, `"e" in "", 1 deep: { `, `"f" in "", 1 deep: t true`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("visited values (-want +got):\n%s", diff)
	}
}

// FuzzWalk: walk reads a document as the standard library does.
func FuzzWalk(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,{"b":"x\"}"},[]],"hidden":{"c":[{"d":1}]},"\u0061":null}`, `"a"`, ` [ ] `, `-1.5`, `[["\\"],{"":{"":""}}]`,
		`{"hidden":[{"a":1},"x"],"b":{"hidden":{"hidden":2},"c":false}}`, "\"\xff\\ud800\"", `{"tools":[{"type":"web"}],"tools":{}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if !json.Valid([]byte(body)) {
			seen(body) // whatever it is, it ends
			return
		}
		if diff := cmp.Diff(decoded(t, body), seen(body)); diff != "" {
			t.Errorf("visited values differ (-standard library +walk):\n%s", diff)
		}
	})
}
