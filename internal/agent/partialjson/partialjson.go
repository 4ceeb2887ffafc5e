// Package partialjson completes JSON objects whose end is missing, such as lines that were truncated because they were
// too long.
//
// Start with [Complete].
package partialjson

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// maxDepth is the nesting limit of encoding/json.
const maxDepth = 10_000

// frame is an object or list that is still open.
type frame struct {
	object  bool
	key     string // of the value that is being read
	wantKey bool   // a key comes next, not a value
}

// completer parses the beginning of a JSON value.
type completer struct {
	data  []byte
	stack []frame
	safe  int // data[:safe] is valid once all open objects and lists are closed
}

// read parses all data. It returns the offset of the string value that the data ends in, or -1.
func (c *completer) read() (half int) {
	for i := 0; i < len(c.data); {
		switch b := c.data[i]; b {
		case '"':
			end := stringEnd(c.data, i)
			if end < 0 {
				if top := c.top(); top != nil && !top.wantKey {
					return i
				}
				return -1
			}
			c.word(i, end)
			i = end
			continue
		case '{', '[':
			if len(c.stack) >= maxDepth {
				c.stack = nil // too deep for encoding/json
				return -1
			}
			c.stack = append(c.stack, frame{object: b == '{', wantKey: b == '{'})
			c.safe = i + 1
		case '}', ']':
			if len(c.stack) < 2 { // the whole object ends here, so it was not truncated
				c.stack = nil
				return -1
			}
			c.stack = c.stack[:len(c.stack)-1]
			c.valued(i + 1)
		case ',':
			if top := c.top(); top != nil {
				top.wantKey = top.object
			}
		case ':', ' ', '\t', '\r', '\n':
		default:
			end := i
			for end < len(c.data) && !separates(c.data[end]) {
				end++
			}
			if end == len(c.data) {
				return -1 // a number may have more digits
			}
			c.valued(end)
			i = end
			continue
		}
		i++
	}
	return -1
}

func (c *completer) top() *frame {
	if len(c.stack) == 0 {
		return nil
	}
	return &c.stack[len(c.stack)-1]
}

// word takes a complete string: a key or a value.
func (c *completer) word(from, to int) {
	top := c.top()
	if top == nil || !top.wantKey {
		c.valued(to)
		return
	}
	top.key, top.wantKey = "", false
	if json.Unmarshal(c.data[from:to], &top.key) != nil {
		top.key = string(c.data[from:to])
	}
}

// valued takes a complete value that ends at to.
func (c *completer) valued(to int) {
	c.safe = to
	if top := c.top(); top != nil {
		top.key = ""
	}
}

// Complete completes a truncated JSON object. It drops an incomplete last value, except for a string, whose beginning
// it keeps. at lists the keys that lead to the place of the cut. whole is nil if data is not the beginning of an
// object.
func Complete(data []byte) (whole []byte, at []string) {
	c := completer{data: data}
	half := c.read()
	if len(c.stack) == 0 || !c.stack[0].object {
		if json.Valid(data) { // only white space is missing
			return data, nil
		}
		return nil, nil
	}
	whole = append(whole, data[:c.safe]...)
	if half >= 0 {
		whole = append(append(whole[:0], trimString(data[:len(data):len(data)], half)...), '"')
	}
	for i := len(c.stack) - 1; i >= 0; i-- {
		whole = append(whole, map[bool]byte{true: '}', false: ']'}[c.stack[i].object])
	}
	for _, f := range c.stack {
		if f.object && !f.wantKey {
			at = append(at, f.key)
		}
	}
	if !json.Valid(whole) {
		return nil, nil
	}
	return whole, at
}

func separates(b byte) bool {
	switch b {
	case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// stringEnd returns the offset after the string that begins at from, or -1 if its end is missing.
func stringEnd(data []byte, from int) int {
	for i := from + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// trimString removes an incomplete escape or character at the end of the string that begins at from.
func trimString(data []byte, from int) []byte {
	last := -1 // beginning of the newest escape
	for i := from + 1; i < len(data); i++ {
		if data[i] == '\\' {
			last = i
			i++
		}
	}
	if last >= 0 {
		length := 2
		if last+1 < len(data) && data[last+1] == 'u' {
			length = 6
		}
		if last+length > len(data) {
			return data[:last]
		}
	}
	for n := 1; n < utf8.UTFMax && n < len(data)-from; n++ {
		if b := data[len(data)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-n:]) {
				return data[:len(data)-n]
			}
			break
		}
	}
	return data
}

// At reports whether a line was truncated within the string under these keys.
func At(at []string, keys ...string) bool { return slices.Equal(at, keys) }
