package agent_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/errand-bot/errand/internal/agent"
)

// TestOutcomeSchema: the schema requires every field of an Outcome, as strict providers demand, and matching answers
// are parsed as an Outcome.
func TestOutcomeSchema(t *testing.T) {
	t.Parallel()
	raw := agent.OutcomeSchema(agent.OutcomeDone, agent.OutcomeQuestion)
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[agent.Outcome]()
	for i := range fields.NumField() {
		if name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ","); schema.Properties[name] == nil {
			t.Errorf("%s is no property", name)
		}
	}
	if len(schema.Properties) != fields.NumField() || len(schema.Required) != fields.NumField() {
		t.Errorf("%d properties, of which %d are required, for %d fields", len(schema.Properties), len(schema.Required), fields.NumField())
	}
	form, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	const nulls = `"question":null,"title":null,"summary":null,"changes":null,"estimate":null,"files":null,"approaches":null`
	for text, fits := range map[string]bool{
		`{"outcome":"done",` + nulls + `,"threads":null}`: true,
		`{"outcome":"question","question":"Which?","title":"x","summary":"x","changes":"x","estimate":"small","files":["a"],"approaches":["b"],"threads":[{"id":"1","answer":"y","commit":null}]}`: true,
		`{"outcome":"build",` + nulls + `,"threads":null}`:                                 false,
		`{"outcome":"done",` + nulls + `}`:                                                 false,
		`{"outcome":"done",` + nulls + `,"threads":null,"more":1}`:                         false,
		`{"outcome":"done",` + nulls + `,"threads":[{"id":1,"answer":"y","commit":null}]}`: false,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := form.Validate(v); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
		if !fits {
			continue
		}
		if o, _, err := agent.ParseOutcome("```errand\n" + text + "\n```"); err != nil || o.Kind == "" {
			t.Errorf("%s is read as %+v, %v", text, o, err)
		}
	}
}
