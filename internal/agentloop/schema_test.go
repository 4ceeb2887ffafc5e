package agentloop

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSchemaErrorIsSpecific: the error about an answer is specific enough for a model to correct it.
func TestSchemaErrorIsSpecific(t *testing.T) {
	t.Parallel()
	s, err := newAnswerSchema(json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
		"properties":{"verdict":{"enum":["advance","iterate"]},"n":{"type":"integer","minimum":1},"list":{"type":"array","items":{"type":"string"}}},
		"required":["verdict"],"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ answer, says string }{
		"fits":            {`{"verdict":"advance","n":3,"list":["a"]}`, ""},
		"lacks a key":     {`{}`, "verdict"},
		"another value":   {`{"verdict":"maybe"}`, "advance"},
		"another key":     {`{"verdict":"advance","reason":"x"}`, "reason"},
		"another type":    {`{"verdict":"advance","list":[1]}`, "string"},
		"a part":          {`{"verdict":"advance","n":1.5}`, "integer"},
		"too small":       {`{"verdict":"advance","n":0}`, "minimum"},
		"no object":       {`[]`, "object"},
		"no JSON":         {`{"verdict":`, "JSON"},
		"more after it":   {`{"verdict":"advance"} x`, "invalid character"},
		"nothing, at all": {``, "JSON"},
	}
	for name, test := range tests {
		if fits := s.accept(json.RawMessage(test.answer)); fits != (test.says == "") || !strings.Contains(s.wrong, test.says) {
			t.Errorf("%s: it fits: %t, and said is %q", name, fits, s.wrong)
		}
	}
}
