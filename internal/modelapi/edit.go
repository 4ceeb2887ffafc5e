package modelapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// edit replaces a part of a body.
type edit struct {
	from, to      int
	before, after string // around the number of an edit that sets a bound
}

// bounds returns where the output is bounded, or would be; nothing if no bound can be set.
func (w *wanted) bounds(body []byte) (all []edit) {
	for _, m := range w.said {
		all = append(all, edit{from: m.at, to: m.at + len(m.value)})
	}
	switch name := strconv.Quote(w.names[0]) + ":"; {
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

// insert makes an edit that puts a key at the beginning of an object, which stands at a place in the body; nothing if it
// is no object.
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

// askUsage has the stream of a chat say at its end what it used. Without that, what a model thinks unseen is not known.
func (w *wanted) askUsage(body []byte) *edit {
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

// AsksUsage reports whether Body changes what a stream is to say of its usage.
func (q *Ask) AsksUsage() bool { return q.usage != nil }

// CanLower reports whether the output can be bounded in the body.
func (q *Ask) CanLower() bool { return len(q.bounds) > 0 }

// Body returns the parts of the body that the provider is sent: with a bound of output, if most is not zero, and with
// usage asked for, unless without. The rest is as it came, and is not copied.
func (q *Ask) Body(most int64, withoutUsage bool) (parts [][]byte) {
	var edits []edit
	if q.usage != nil && !withoutUsage {
		edits = append(edits, *q.usage)
	}
	if most > 0 {
		for _, e := range q.bounds {
			e.before += strconv.FormatInt(most, 10)
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
