package record

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// wordy lists the keys whose values come from a fixed list at GitHub, so that each value is a separate shape.
func wordy(key string) bool {
	switch key {
	case "state", "state_reason", "status", "conclusion", "type", "action", "event", "author_association", "side", "start_side",
		"subject_type", "role_name", "permission", "encoding", "visibility", "mode", "mergeable_state", "merge_method",
		"active_lock_reason", "reason", "content", "ref_type", "pusher_type", "repository_selection", "target_type", "code":
		return true
	}
	return false
}

// shapeOf returns the shape of a JSON text: its keys and the types of its values.
func shapeOf(raw json.RawMessage) string {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return ""
	}
	var b strings.Builder
	shape(&b, "", v)
	return b.String()
}

func shape(b *strings.Builder, key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b.WriteByte('{')
		for _, k := range keys {
			b.WriteString(k + ":")
			shape(b, k, v[k])
			b.WriteByte(' ')
		}
		b.WriteByte('}')
	case []any:
		var kinds []string
		for _, e := range v {
			var one strings.Builder
			shape(&one, key, e)
			kinds = append(kinds, one.String())
		}
		slices.Sort(kinds)
		b.WriteString("[" + strings.Join(slices.Compact(kinds), ",") + "]")
	case string:
		b.WriteString(textShape(key, v))
	case float64:
		b.WriteString(map[bool]string{true: "int", false: "num"}[v == float64(int64(v))])
	case bool:
		b.WriteString("bool")
	default:
		b.WriteString("null")
	}
}

func textShape(key, v string) string {
	switch {
	case wordy(key) && len(v) <= 32:
		return strconv.Quote(v)
	case v == "":
		return "empty"
	case strings.HasPrefix(v, "http://"), strings.HasPrefix(v, "https://"):
		return "url"
	}
	if _, err := time.Parse(time.RFC3339, v); err == nil {
		return "time"
	}
	return "text"
}
