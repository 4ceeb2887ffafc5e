package modelapi

import (
	"bytes"
	"encoding/json"
	"strings"
)

// value is a value of a JSON document, or the beginning of an object or a list.
type value struct {
	// Key is the key under which it stands; what stands in a list has the key of the list.
	Key *name
	// Owner is the key under which the object with that key stands.
	Owner *name
	// Depth is how many objects are around it.
	Depth int
	// Kind is its first byte.
	Kind byte
	// Raw is what stands between the quotes of a string, or the whole of another plain value.
	Raw []byte
}

// name is a key as it stands in a document, and without what readers may make nothing of: in small letters, and
// without what joins its words.
type name struct{ plain, folded string }

// names are keys of a document, each made once: a conversation has the same few thousands of times.
type names map[string]*name

// maxNames bounds how many are kept; of more each is made whenever it comes.
const maxNames = 256

// get returns the key that stands between two quotes.
func (n names) get(raw []byte) *name {
	if known, ok := n[string(raw)]; ok { // which makes no string
		return known
	}
	made := &name{plain: value{Raw: raw}.text()}
	made.folded = fold(made.plain)
	if len(n) < maxNames {
		n[string(raw)] = made
	}
	return made
}

// fold is a key in small letters and without what joins its words. The long s is an s, as it is to readers that take keys
// for the same whatever their case.
func fold(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", "ſ", "s").Replace(key))
}

// text is what a string says.
func (v value) text() string {
	s, err := unquote(v.Raw)
	if err != nil { // of valid JSON: cannot happen
		return string(v.Raw)
	}
	return s
}

// prefix is how the text of a string begins, without spaces before it: at least 64 bytes where it has more. An image
// that stands in a call is not copied for it.
func (v value) prefix() string {
	const enough = 64
	raw := bytes.TrimLeft(v.Raw, " ")
	if len(raw) > enough && isPlain(raw[:enough]) {
		return string(raw[:enough])
	}
	return value{Raw: raw}.text()
}

// isPlain reports whether a text stands in JSON as it is.
func isPlain(raw []byte) bool {
	for _, c := range raw {
		if c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}

// unquote reads what stands between the quotes of a string.
func unquote(raw []byte) (string, error) {
	if isPlain(raw) {
		return string(raw), nil
	}
	var s string
	err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &s)
	return s, err
}

// container is an object or a list that a value stands in.
type container struct {
	key, owner *name // of the object's newest key, or of the list
	depth      int   // how many objects there are, with it
	object     bool
	keyed      bool // an object's: its key has been read, its value not yet
	hidden     bool // nothing in it is looked at
}

// walk calls see with each value of a valid JSON document, in their order, also with those that another reader
// would drop because their key comes again. See answers whether what stands in an object or a list is to be looked
// at. It reads each byte once, and takes memory by the depth of the document alone, which json.Valid bounds.
func walk(body []byte, see func(v value) (into bool)) {
	keys, none := names{}, &name{}
	stack := make([]container, 1, 16)
	stack[0] = container{key: none, owner: none} // what the document stands in
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

// value is what stands here next.
func (a *container) value(kind byte) value {
	return value{Key: a.key, Owner: a.owner, Depth: a.depth, Kind: kind}
}

// emit tells of a plain value.
func (a *container) emit(kind byte, raw []byte, see func(v value) bool) {
	a.keyed = false
	if a.hidden {
		return
	}
	v := a.value(kind)
	v.Raw = raw
	see(v)
}
