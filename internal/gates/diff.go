package gates

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Changes has the added and changed lines of each file, by its path in the repository.
type Changes map[string]*Lines

// HasCode reports whether a file has changed in whose language there are tools that write reports.
func (c Changes) HasCode() bool {
	for name := range c {
		switch strings.ToLower(path.Ext(name)) {
		case ".bash", ".c", ".cc", ".cjs", ".clj", ".cpp", ".cs", ".cxx", ".dart", ".erl", ".ex", ".exs", ".f90", ".fs", ".go", ".groovy", ".h", ".hh", ".hpp",
			".hs", ".java", ".jl", ".js", ".jsx", ".kt", ".kts", ".lua", ".m", ".mjs", ".ml", ".mm", ".mts", ".php", ".pl", ".pm", ".py", ".r", ".rb", ".rs", ".scala",
			".sh", ".svelte", ".swift", ".ts", ".tsx", ".vb", ".vue", ".zig":
			return true
		}
	}
	return false
}

// Lines are lines of one file, in ascending order.
type Lines struct {
	numbers []int
	bare    []bool // the line has no statement: it is empty, a comment or only brackets
}

// Add adds a line, which comes after those that were added before.
func (l *Lines) Add(number int, text string) {
	l.numbers, l.bare = append(l.numbers, number), append(l.bare, isBare(text))
}

// index returns the position of a line.
func (l *Lines) index(number int) (int, bool) { return slices.BinarySearch(l.numbers, number) }

// isBare reports whether a line has no statement, as far as one can tell from the line alone.
func isBare(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "//") || strings.Trim(text, "{}()[];,") == ""
}

// ParseDiff reads the output of `git diff --unified=0 --text` with the prefixes a/ and b/.
func ParseDiff(patch []byte) (Changes, error) {
	p := diffParser{out: Changes{}}
	for n := 1; len(patch) > 0; n++ {
		line := patch
		if i := bytes.IndexByte(patch, '\n'); i >= 0 {
			line, patch = patch[:i], patch[i+1:]
		} else {
			patch = nil
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("line %d of the differences: %w", n, err)
		}
	}
	return p.out, nil
}

// diffParser reads a patch. The lengths in a hunk's header say which lines are content, whatever they look like.
type diffParser struct {
	out      Changes
	file     string // empty if it is deleted
	old, add int    // lines that are left of the hunk
	next     int    // number of the next added line
}

func (p *diffParser) line(line []byte) error {
	switch {
	case p.old > 0 && bytes.HasPrefix(line, []byte("-")):
		p.old--
	case p.add > 0 && bytes.HasPrefix(line, []byte("+")):
		if p.file != "" {
			if p.out[p.file] == nil {
				p.out[p.file] = &Lines{}
			}
			p.out[p.file].Add(p.next, string(line[1:]))
		}
		p.add--
		p.next++
	case bytes.HasPrefix(line, []byte(`\`)): // no newline at the end of the file
	case p.old > 0 || p.add > 0:
		return fmt.Errorf("a hunk ends early")
	case bytes.HasPrefix(line, []byte("@@ ")):
		return p.hunk(string(line))
	case bytes.HasPrefix(line, []byte("diff --git ")):
		p.file = ""
	case bytes.HasPrefix(line, []byte("+++ ")):
		return p.name(string(line[len("+++ "):]))
	}
	return nil
}

// name reads the name of the new file, which git quotes if it has unusual characters, and ends with a tab if it has spaces.
func (p *diffParser) name(text string) error {
	text = strings.TrimSuffix(text, "\t")
	if strings.HasPrefix(text, `"`) {
		var ok bool
		if text, ok = unquote(text); !ok {
			return fmt.Errorf("the name of a file cannot be read")
		}
	}
	p.file = ""
	if text == "/dev/null" {
		return nil
	}
	name, ok := strings.CutPrefix(text, "b/")
	if !ok {
		return fmt.Errorf("the name of a file has no prefix")
	}
	p.file = name
	return nil
}

// escapes has the bytes that git writes as a backslash and a character.
var escapes = map[byte]byte{'a': '\a', 'b': '\b', 't': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', '"': '"', '\\': '\\'}

// unquote returns a name that git has quoted. It is made of bytes, not necessarily of characters.
func unquote(text string) (string, bool) {
	if len(text) < 2 || text[len(text)-1] != '"' {
		return "", false
	}
	var out []byte
	for rest := text[1 : len(text)-1]; rest != ""; {
		b := rest[0]
		rest = rest[1:]
		if b == '"' || b == '\\' && rest == "" {
			return "", false
		}
		if b == '\\' {
			plain, ok := escapes[rest[0]]
			n := 1
			if !ok {
				n = min(3, len(rest))
				value, err := strconv.ParseUint(rest[:n], 8, 8)
				if plain = byte(value); err != nil || n < 3 {
					return "", false
				}
			}
			b, rest = plain, rest[n:]
		}
		out = append(out, b)
	}
	return string(out), true
}

// hunk reads a header such as "@@ -3,2 +4,5 @@ func main() {".
func (p *diffParser) hunk(line string) error {
	fields := strings.SplitN(line, " ", 4)
	if len(fields) < 4 || !strings.HasPrefix(fields[1], "-") || !strings.HasPrefix(fields[2], "+") {
		return fmt.Errorf("the header of a hunk cannot be read")
	}
	_, old, okOld := span(fields[1][1:])
	start, add, okAdd := span(fields[2][1:])
	least := 1
	if l := p.out[p.file]; l != nil {
		least = l.numbers[len(l.numbers)-1] + 1
	}
	if !okOld || !okAdd || add > 0 && start < least {
		return fmt.Errorf("the header of a hunk cannot be read")
	}
	p.old, p.add, p.next = old, add, start
	return nil
}

// span reads "start,length", of which the length may be missing.
func span(text string) (start, length int, ok bool) {
	first, second, has := strings.Cut(text, ",")
	start, err := strconv.Atoi(first)
	length = 1
	if has && err == nil {
		length, err = strconv.Atoi(second)
	}
	return start, length, err == nil && start >= 0 && length >= 0 && start <= maxLine && length <= maxLine
}

// maxLine is the largest number of a line that is read.
const maxLine = 1 << 30
