package runlog

import (
	"encoding/json"
	"strings"
)

// InputWords is the input of a tool as people read it: a command as it is typed, other fields a line
// each, under their names and in their order. What is no object stays as it is.
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

// inputFields takes an object apart; false if it is none, or an empty one.
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
