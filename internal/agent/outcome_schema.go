package agent

import (
	"encoding/json"
	"slices"
)

// OutcomeSchema returns the JSON schema of an [Outcome] with the conclusions that a step allows. Strict providers
// require every field, so a field without content is null.
func OutcomeSchema(kinds ...OutcomeKind) json.RawMessage {
	text, maybe := map[string]any{"type": "string"}, map[string]any{"type": []string{"string", "null"}}
	list := func(of map[string]any) map[string]any {
		return map[string]any{"type": []string{"array", "null"}, "items": of}
	}
	object := func(fields map[string]any) map[string]any {
		names := make([]string, 0, len(fields))
		for name := range fields {
			names = append(names, name)
		}
		slices.Sort(names)
		return map[string]any{"type": "object", "properties": fields, "required": names, "additionalProperties": false}
	}
	schema, err := json.Marshal(object(map[string]any{
		"outcome":  map[string]any{"type": "string", "enum": kinds},
		"question": maybe, "title": maybe, "summary": maybe, "changes": maybe, "estimate": maybe,
		"files":      list(text),
		"approaches": list(text),
		"threads":    list(object(map[string]any{"id": text, "answer": text, "commit": maybe})),
	}))
	if err != nil {
		panic(err) // strings, lists and maps of them always encode
	}
	return schema
}
