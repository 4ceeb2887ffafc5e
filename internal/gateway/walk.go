package gateway

import (
	"encoding/json"
	"strings"
)

// value is a value of a JSON document, or the beginning of an object or a list.
type value struct {
	// Key is the key under which it stands; what stands in a list has the key of the list.
	Key string
	// Owner is the key under which the object with that key stands.
	Owner string
	// Depth is how many objects are around it.
	Depth int
	// Kind is its first byte.
	Kind byte
	// Raw is what stands between the quotes of a string, or the whole of another plain value.
	Raw []byte
}

// text is what a string says.
func (v value) text() string {
	s, err := unquote(v.Raw)
	if err != nil { // of valid JSON: cannot happen
		return string(v.Raw)
	}
	return s
}

// unquote reads what stands between the quotes of a string.
func unquote(raw []byte) (string, error) {
	plain := true
	for _, c := range raw {
		if c == '\\' || c >= 0x80 {
			plain = false
			break
		}
	}
	if plain {
		return string(raw), nil
	}
	var s string
	err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &s)
	return s, err
}

// around is an object or a list that a value stands in.
type around struct {
	key, owner string // of the object's newest key, or of the list
	depth      int    // how many objects there are, with it
	object     bool
	keyed      bool // an object's: its key has been read, its value not yet
	hidden     bool // nothing in it is looked at
}

// walk calls see with each value of a valid JSON document, in their order, also with those that another reader
// would drop because their key comes again. See answers whether what stands in an object or a list is to be looked
// at. It reads each byte once and takes memory by the depth of the document alone, which json.Valid bounds.
func walk(body []byte, see func(v value) (into bool)) {
	stack := make([]around, 1, 16) // the first is what the document stands in
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
			in := around{key: v.Key, owner: v.Owner, depth: v.Depth, object: c == '{', hidden: top.hidden || !see(v)}
			if in.object {
				in.key, in.owner, in.depth = "", v.Key, v.Depth+1
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
					top.key = value{Raw: raw}.text()
				}
				continue
			}
			top.say('"', raw, see)
		default:
			end := i + 1
			for end < len(body) && !strings.ContainsRune(" \t\r\n,]}", rune(body[end])) {
				end++
			}
			top.say(c, body[i:end], see)
			i = end - 1
		}
	}
}

// value is what stands here next.
func (a *around) value(kind byte) value {
	return value{Key: a.key, Owner: a.owner, Depth: a.depth, Kind: kind}
}

// say tells of a plain value.
func (a *around) say(kind byte, raw []byte, see func(v value) bool) {
	a.keyed = false
	if a.hidden {
		return
	}
	v := a.value(kind)
	v.Raw = raw
	see(v)
}
