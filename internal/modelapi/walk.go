package modelapi

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A value is a value of a JSON document, or the beginning of an object or list.
type value struct {
	// Key is its key; values in a list have the key of the list.
	Key *name
	// Owner is the key of the object that contains Key.
	Owner *name
	// Depth is the number of objects that contain it.
	Depth int
	// Kind is its first byte.
	Kind byte
	// Raw is the text between the quotes of a string, or the text of another scalar.
	Raw []byte
}

// A name is a key as written in a document, and folded: in lower case, without separators between words, because some
// readers ignore both.
type name struct{ plain, folded string }

// names are the keys of a document, each allocated once: a conversation repeats the same few keys thousands of times.
type names map[string]*name

// maxNames limits how many are kept; others are allocated for each occurrence.
const maxNames = 256

// get returns the name of a key, given the text between its quotes.
func (n names) get(raw []byte) *name {
	if known, ok := n[string(raw)]; ok { // does not allocate
		return known
	}
	made := &name{plain: value{Raw: raw}.text()}
	made.folded = fold(made.plain)
	if len(n) < maxNames {
		n[string(raw)] = made
	}
	return made
}

// fold returns a key in lower case and without separators. It treats the long s as an s, as readers that ignore case
// do.
func fold(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", "ſ", "s").Replace(key))
}

// text returns the decoded text of a string.
func (v value) text() string {
	s, err := unquote(v.Raw)
	if err != nil { // cannot happen in valid JSON
		return string(v.Raw)
	}
	return s
}

// prefix returns the beginning of a string's text, without leading spaces: at least 64 bytes of a longer one. It does
// not copy whole images.
func (v value) prefix() string {
	const enough = 64
	raw := bytes.TrimLeft(v.Raw, " ")
	if len(raw) > enough && isPlain(raw[:enough]) {
		return string(raw[:enough])
	}
	return value{Raw: raw}.text()
}

// isPlain reports whether a text is the same in JSON, without escapes.
func isPlain(raw []byte) bool {
	for _, c := range raw {
		if c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

// unquote decodes the text between the quotes of a string.
func unquote(raw []byte) (string, error) {
	if isPlain(raw) {
		return string(raw), nil
	}
	var s string
	err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &s)
	return s, err
}

// A container is an object or list that contains a value.
type container struct {
	key, owner *name // of the object's latest key, or of the list
	depth      int   // the number of objects, including this one
	object     bool
	keyed      bool // a key of the object has been read, its value not yet
	hidden     bool // its values are skipped
}

// walk calls see with each value of a valid JSON document in order, including those that other readers drop because
// their key is repeated. See returns whether to walk into an object or list. It reads each byte once, and its memory
// depends only on the depth of the document, which json.Valid limits.
func walk(body []byte, see func(v value) (into bool)) {
	keys, none := names{}, &name{}
	stack := make([]container, 1, 16)
	stack[0] = container{key: none, owner: none} // contains the document
	for i := 0; i < len(body); i++ {
		top := &stack[len(stack)-1]
		switch c := body[i]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		case '}', ']':
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case '{', '[':
			v := top.value(c)
			in := container{key: v.Key, owner: v.Owner, depth: v.Depth, object: c == '{', hidden: top.hidden || !see(v)}
			if in.object {
				in.key, in.owner, in.depth = none, v.Key, v.Depth+1
			}
			top.keyed = false
			stack = append(stack, in)
		case '"':
			last := stringEnd(body, i)
			raw := body[i+1 : max(last, i+1)]
			i = last
			if top.object && !top.keyed {
				top.keyed = true
				if !top.hidden {
					top.key = keys.get(raw)
				}
				continue
			}
			top.emit('"', raw, see)
		default:
			end := i + 1
			for end < len(body) && !strings.ContainsRune(" \t\r\n,]}", rune(body[end])) {
				end++
			}
			top.emit(c, body[i:end], see)
			i = end - 1
		}
	}
}

// value returns the next value of the container.
func (a *container) value(kind byte) value {
	return value{Key: a.key, Owner: a.owner, Depth: a.depth, Kind: kind}
}

// emit calls see with a scalar.
func (a *container) emit(kind byte, raw []byte, see func(v value) bool) {
	a.keyed = false
	if a.hidden {
		return
	}
	v := a.value(kind)
	v.Raw = raw
	see(v)
}
