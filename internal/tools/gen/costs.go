package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-bot/errand/internal/costs"
)

// The end of a generated part of a document that is written by hand.
const generatedEnd = "<!-- end -->\n"

// vmCosts returns docs/vm-costs.md with the table of VM costs.
func vmCosts(s *source) (string, error) {
	table, err := costs.Document()
	if err != nil {
		return "", err
	}
	return s.replacePart("docs/vm-costs.md", "internal/costs", table)
}

// replacePart returns a document in which text replaces the part that is generated from a package.
func (s *source) replacePart(path, from, text string) (string, error) {
	data, err := os.ReadFile(filepath.Join(s.root, path))
	if err != nil {
		return "", err
	}
	begin := fmt.Sprintf("<!-- Made by `make generate` from %s: begin -->\n", from)
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ended := strings.Cut(rest, generatedEnd)
	if !ok || !ended {
		return "", fmt.Errorf("the lines around the generated part are missing: %s%s", begin, generatedEnd)
	}
	return before + begin + "\n" + text + "\n" + generatedEnd + after, nil
}
