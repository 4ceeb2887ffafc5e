package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxJSONDepth is the nesting limit of encoding/json.
const maxJSONDepth = 10_000

// cutTooLong explains to people that an answer was in an overlong line.
const cutTooLong = "the agent's answer was longer than the 4 MiB that errand keeps of a line, so its end is missing and it was discarded: it has to be shorter"

// cutNoResult explains to people that the answer may have been in dropped output.
const cutNoResult = "part of the agent's output is missing, because it was more than errand keeps (4 MiB of a line, or the limit of a run), " +
	"and no result came after that, so its answer is unknown: it has to be shorter"

// emptyAnswer explains to people that the last answer was empty.
const emptyAnswer = "the model's last answer was empty, as when it declines or has no room left"

// declined explains to people that the model declined.
const declined = "the model declined to answer"

// otherSession explains to people that a run did not resume its session.
const otherSession = "the agent began another session than the one to resume"

// endedBadly explains to people that a program reported success but failed.
func endedBadly(e Ended) string {
	if e.Exit.Signal != "" {
		return "the agent reported success, but its program was killed"
	}
	return fmt.Sprintf("the agent reported success, but its program ended with code %d", e.Exit.Code)
}

// cutNotice describes a truncated line.
func cutNotice(missing int) string {
	return fmt.Sprintf("a line was too long; %d bytes of it are missing", missing)
}

// jsonFrame is an object or list that is still open.
type jsonFrame struct {
	object  bool
	key     string // of the value that is being read
	wantKey bool   // a key comes next, not a value
}

// jsonCloser parses the beginning of a JSON value.
type jsonCloser struct {
	data  []byte
	stack []jsonFrame
	safe  int // data[:safe] is valid once all open objects and lists are closed
}

// closeJSON completes a truncated JSON object. It drops an incomplete last value, except for a string, whose beginning
// it keeps. at lists the keys that lead to the place of the cut. whole is nil if data is not the beginning of an
// object.
func closeJSON(data []byte) (whole []byte, at []string) {
	c := jsonCloser{data: data}
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

// read parses all data. It returns the offset of the string value that the data ends in, or -1.
func (c *jsonCloser) read() (half int) {
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
			if len(c.stack) >= maxJSONDepth {
				c.stack = nil // too deep for encoding/json
				return -1
			}
			c.stack = append(c.stack, jsonFrame{object: b == '{', wantKey: b == '{'})
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

func (c *jsonCloser) top() *jsonFrame {
	if len(c.stack) == 0 {
		return nil
	}
	return &c.stack[len(c.stack)-1]
}

// word takes a complete string: a key or a value.
func (c *jsonCloser) word(from, to int) {
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
func (c *jsonCloser) valued(to int) {
	c.safe = to
	if top := c.top(); top != nil {
		top.key = ""
	}
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

// clean reports whether the program exited on its own and reports success.
func (e Ended) clean() bool { return e.Exit.Code == 0 && e.Exit.Signal == "" }

// maxAnswer bounds the final answer in bytes; the runner keeps as much of a line.
const maxAnswer = 4 << 20

// cutIn reports whether a line was truncated within the string under these keys.
func cutIn(at []string, keys ...string) bool { return slices.Equal(at, keys) }
