package modelapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// An edit replaces a part of a body.
type edit struct {
	from, to      int
	before, after string // and after the number in an edit that sets a limit
}

// limitEdits returns the edits that set the output limit, or nil if it cannot be set.
func (w *requestReader) limitEdits(body []byte) (all []edit) {
	for _, m := range w.outputLimits {
		all = append(all, edit{from: m.at, to: m.at + len(m.value)})
	}
	switch name := strconv.Quote(w.limitNames[0]) + ":"; {
	case len(all) > 0:
	case !w.gemini:
		return insert(body, 0, name, "")
	case len(w.configs) == 0:
		return insert(body, 0, `"generationConfig":{`+name, "}")
	default:
		return insert(w.configs[0].value, w.configs[0].at, name, "")
	}
	return all
}

// insert returns an edit that inserts a key at the beginning of the object at index at of the body, or nil if it is not
// an object.
func insert(object []byte, at int, before, after string) []edit {
	begin := bytes.IndexByte(object, '{')
	if begin < 0 || len(bytes.TrimSpace(object[:begin])) > 0 {
		return nil
	}
	if rest := bytes.TrimLeft(object[begin+1:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
		after += ","
	}
	return []edit{{from: at + begin + 1, to: at + begin + 1, before: before, after: after}}
}

// usageEdit returns the edit that requests the usage of a stream. Without it, hidden reasoning is not reported.
func (w *requestReader) usageEdit(body []byte) *edit {
	const usage = `{"include_usage":true}`
	if w.options == nil {
		if all := insert(body, 0, `"stream_options":`+usage, ""); len(all) > 0 {
			return &all[0]
		}
		return nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, w.options.value) == nil && compact.String() == usage {
		return nil
	}
	return &edit{from: w.options.at, to: w.options.at + len(w.options.value), before: usage}
}

// AddsUsageOption reports whether Body requests usage that the request itself does not.
func (q *Request) AddsUsageOption() bool { return q.usageOption != nil }

// CanLimitOutput reports whether Body can limit the output.
func (q *Request) CanLimitOutput() bool { return len(q.limits) > 0 }

// Body returns the parts of the body to send: with an output limit in tokens, unless it is zero, and with a request for
// usage, unless withoutUsage is set. The rest of the body is unchanged and not copied.
func (q *Request) Body(outputLimit int64, withoutUsage bool) (parts [][]byte) {
	var edits []edit
	if q.usageOption != nil && !withoutUsage {
		edits = append(edits, *q.usageOption)
	}
	if outputLimit > 0 {
		for _, e := range q.limits {
			e.before += strconv.FormatInt(outputLimit, 10)
			edits = append(edits, e)
		}
	}
	at := 0
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	for _, e := range edits {
		parts = append(parts, q.body[at:e.from], []byte(e.before+e.after))
		at = e.to
	}
	return append(parts, q.body[at:])
}
