package partialjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestComplete: complete values stay, a truncated string keeps its beginning, and the path leads to the place
// of the cut.
func TestComplete(t *testing.T) {
	t.Parallel()
	for cut, want := range map[string]struct {
		whole string
		at    string
	}{
		`{`:                             {`{}`, ""},
		`{"a`:                           {`{}`, ""},
		`{"a"`:                          {`{}`, "a"},
		`{"a":`:                         {`{}`, "a"},
		`{"a":1`:                        {`{}`, "a"}, // it may have been 12
		`{"a":1,`:                       {`{"a":1}`, ""},
		`{"a":tru`:                      {`{}`, "a"},
		`{"a":true,"b":"x`:              {`{"a":true,"b":"x"}`, "b"},
		`{"a":"x"`:                      {`{"a":"x"}`, "-"},
		`{"a":"x","b":{"c":[1,{"d":"y`:  {`{"a":"x","b":{"c":[1,{"d":"y"}]}}`, "b.c.d"},
		`{"a":{"b":"x"}`:                {`{"a":{"b":"x"}}`, "-"},
		`{"a":["x","y`:                  {`{"a":["x","y"]}`, "a"},
		`{"a":"x\`:                      {`{"a":"x"}`, "a"},
		`{"a":"x\\`:                     {`{"a":"x\\"}`, "a"},
		`{"a":"x\u00`:                   {`{"a":"x"}`, "a"},
		`{"a":"x\u00e4`:                 {`{"a":"x\u00e4"}`, "a"},
		`{"a":"x\"y`:                    {`{"a":"x\"y"}`, "a"},
		"{\"a\":\"x\xc3":                {`{"a":"x"}`, "a"},
		"{\"a\":\"xä":                   {`{"a":"xä"}`, "a"},
		`{"a":1}`:                       {`{"a":1}`, ""},
		`{"a":1} and more`:              {"", ""},
		`[1,2`:                          {"", ""},
		`"x`:                            {"", ""},
		`words`:                         {"", ""},
		``:                              {"", ""},
		`{"a":}`:                        {"", ""},
		`{]`:                            {"", ""},
		strings.Repeat(`{"a":`, 20_000): {"", ""},
	} {
		whole, at := Complete([]byte(cut))
		path := strings.Join(at, ".")
		if len(at) == 1 && at[0] == "" {
			path = "-" // in an object, after a whole value
		}
		if string(whole) != want.whole || whole != nil && path != want.at {
			t.Errorf("%.60s: %.100s at %.100q, want %s at %q", cut, whole, path, want.whole, want.at)
		}
	}
}

// FuzzComplete: an object that is truncated anywhere is completed without changing its values.
func FuzzComplete(f *testing.F) {
	f.Add(`{"type":"item.completed","item":{"id":"1","n":-1.5e3,"ok":null,"list":[[],{}],"text":"a\u00e4\"\\b"}}`, 30)
	f.Fuzz(func(t *testing.T, s string, n int) {
		var whole map[string]any
		if json.Unmarshal([]byte(s), &whole) != nil || n < 1 || n > len(s) {
			return
		}
		cut := strings.TrimLeft(s, " \t\r\n")
		got, _ := Complete([]byte(cut[:min(n, len(cut))]))
		var part map[string]any
		if err := json.Unmarshal(got, &part); err != nil {
			t.Fatalf("%q is %q: %v", s[:n], got, err)
		}
		for key, v := range part {
			if _, ok := whole[key]; !ok {
				t.Errorf("%q has the key %q, the whole has not: %q", got, key, s)
			}
			if was, ok := whole[key].(float64); ok {
				if diff := cmp.Diff(was, v); diff != "" {
					t.Errorf("%q has another number at %q: %s", got, key, diff)
				}
			}
		}
	})
}
