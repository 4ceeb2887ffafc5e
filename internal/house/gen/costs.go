package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-bot/errand/internal/costs"
)

// The part of docs/vm-costs.md that is made from code stands between these lines.
const (
	vmCostsPath = "docs/vm-costs.md"
	costsBegin  = "<!-- Made by `make generate` from internal/costs: begin -->\n"
	costsEnd    = "<!-- end -->\n"
)

// vmCosts is docs/vm-costs.md with the table of what VMs cost in it.
func vmCosts(s *source) (string, error) {
	data, err := os.ReadFile(filepath.Join(s.root, vmCostsPath))
	if err != nil {
		return "", err
	}
	before, rest, ok := strings.Cut(string(data), costsBegin)
	_, after, ended := strings.Cut(rest, costsEnd)
	if !ok || !ended {
		return "", fmt.Errorf("the lines around the table are missing: %s%s", costsBegin, costsEnd)
	}
	table, err := costs.Document()
	if err != nil {
		return "", err
	}
	return before + costsBegin + "\n" + table + "\n" + costsEnd + after, nil
}
