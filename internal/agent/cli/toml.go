package cli

import (
	"bytes"
	"encoding/json"
	"strings"
)

// TOMLString returns a TOML basic string. JSON strings have the same form except for one character.
func TOMLString(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil {
		return `""` // a string always encodes
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

// TOMLStrings returns a list of strings on one line.
func TOMLStrings(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = TOMLString(s)
	}
	return "[" + strings.Join(out, ",") + "]"
}
