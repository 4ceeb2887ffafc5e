package runlog

import (
	"encoding/json"
	"strings"
)

// InputWords formats the input of a tool for people: a command as typed, other fields on one line each, with their
// names and in order. Input that is not an object stays unchanged.
func InputWords(input string) string {
	fields, ok := inputFields(input)
	if !ok {
		return input
	}
	var lines []string
	for _, f := range fields {
		switch {
		case f.name == "command":
			lines = append(lines, f.value)
		case strings.Contains(f.value, "\n"):
			lines = append(lines, f.name+":\n"+f.value)
		default:
			lines = append(lines, f.name+": "+f.value)
		}
	}
	return strings.Join(lines, "\n")
}

type inputField struct{ name, value string }

// inputFields splits an object into its fields; ok is false for an empty object or another value.
func inputFields(input string) (fields []inputField, ok bool) {
	d := json.NewDecoder(strings.NewReader(input))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		key, err := d.Token()
		name, isText := key.(string)
		var raw json.RawMessage
		if err != nil || !isText || d.Decode(&raw) != nil {
			return nil, false
		}
		value := string(raw)
		var text string
		if json.Unmarshal(raw, &text) == nil {
			value = strings.TrimRight(text, "\n")
		}
		fields = append(fields, inputField{name, value})
	}
	if _, err := d.Token(); err != nil || d.More() {
		return nil, false
	}
	return fields, len(fields) > 0
}
