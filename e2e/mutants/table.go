package mutants

import (
	"fmt"
	"strings"
)

// A Mutant is a bug that is planted in the product's source when a test binary is built.
type Mutant struct {
	ID, Class, Bug string
	Edits          []Edit
	Want           []string // subjects of the complaint, one of which must match
	Acts           string   // actions that the walks do more often than usual
	Test           string   // the test that detects it, if the common test of all mutants does not
	Open           string   // why no test detects it yet
	line           int
}

// An Edit replaces a text in a file. In New, the word mutant stands for a condition that is true while the mutant is
// played; otherwise New does the same as Old.
type Edit struct{ File, Old, New string }

// parse reads a table in the format described at its top. file is its name in errors.
func parse(file, data string) ([]Mutant, error) {
	var list []Mutant
	for i, line := range strings.Split(data, "\n") {
		key, value, _ := strings.Cut(line, " ")
		value = strings.TrimSpace(value)
		if key == "" || key == "#" {
			continue
		}
		if key == "bug" {
			words := strings.SplitN(value, " ", 3)
			if len(words) < 3 || words[1] != "2" && words[1] != "3" {
				return nil, fmt.Errorf("%s:%d: want `bug ID CLASS WORDS`, with a class of 2 or 3", file, i+1)
			}
			list = append(list, Mutant{ID: words[0], Class: words[1], Bug: words[2], line: i + 1})
			continue
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s:%d: a bug begins with `bug`", file, i+1)
		}
		if err := list[len(list)-1].set(key, value); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	return list, nil
}

func (m *Mutant) set(key, value string) error {
	if key == "file" {
		m.Edits = append(m.Edits, Edit{File: value})
		return nil
	}
	last := &Edit{}
	if n := len(m.Edits); n > 0 {
		last = &m.Edits[n-1]
	} else if key == "old" || key == "new" {
		return fmt.Errorf("%s: name the file first", m.ID)
	}
	switch key {
	case "old":
		last.Old = value
	case "new":
		last.New = value
	case "want":
		m.Want = strings.Fields(value)
	case "acts":
		m.Acts = value
	case "test":
		m.Test = value
	case "open":
		m.Open = value
	default:
		return fmt.Errorf("%s: no such key: %q", m.ID, key)
	}
	return nil
}
