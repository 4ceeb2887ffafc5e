package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/tools/layers"
)

// contributing returns CONTRIBUTING.md with the table of layers.
func contributing(s *source) (string, error) {
	var b strings.Builder
	b.WriteString("| Layer | Packages, with those below them | Contents | May import |\n|---|---|---|---|\n")
	for i, l := range layers.All() {
		may := names(l.May, "")
		if i > 0 && len(l.May) == i {
			may = "all above"
		}
		there := slices.DeleteFunc(l.Paths, func(path string) bool { return !s.has(path) })
		b.WriteString("| " + l.Name + " | " + names(there, "`") + " | " + l.Doc + " | " + may + " |\n")
	}
	b.WriteString("\nRules for single packages and libraries:\n\n")
	for _, r := range layers.Importers() {
		b.WriteString("- " + names(r.Of, "`") + ": only " + names(r.Only, "`") + ", since " + r.Why + ".\n")
	}
	for _, e := range layers.Exceptions() {
		from := "`" + e.From + "`"
		if e.TestsOnly {
			from = "The tests of " + from
		}
		b.WriteString("- " + from + " may import `" + e.To + "`: " + e.Why + ".\n")
	}
	return s.replacePart("CONTRIBUTING.md", "internal/tools/layers", b.String())
}

const packagesHead = `# Packages

<!-- Made by ` + "`make generate`" + ` from the packages' doc comments and imports. -->

Every package, layer by layer from the bottom to the top. A layer imports only layers above it in this list, and not all of
those: [CONTRIBUTING.md](../CONTRIBUTING.md#layers) has the rules, which the test ` + "`TestImports`" + ` checks.
`

// packageList returns docs/packages.md.
func packageList(s *source) (string, error) {
	files, err := layers.Files(s.root, ".go")
	if err != nil {
		return "", err
	}
	packages, err := layers.Packages(s.root, files)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(packagesHead)
	for _, l := range layers.All() {
		b.WriteString("\n## Layer: " + l.Name + "\n\n" + l.Doc + "\n\n| Package | Holds | Imports |\n|---|---|---|\n")
		for _, p := range packages {
			if of, _ := layers.Of(p.Path); of.Name == l.Name {
				b.WriteString("| `" + p.Path + "` | " + holds(p) + " | " + names(p.Ours(), "`") + " |\n")
			}
		}
	}
	return b.String(), nil
}

// has reports whether a directory exists, because layers also list future packages.
func (s *source) has(path string) bool {
	info, err := os.Stat(filepath.Join(s.root, path))
	return err == nil && info.IsDir()
}

// holds returns the doc comment of a package without the name of the package, for a table.
func holds(p layers.Package) string {
	doc := strings.TrimPrefix(strings.TrimPrefix(p.Doc, "Package "), "Command ")
	if text, ok := strings.CutSuffix(doc, ":"); ok {
		doc = text + "."
	}
	return strings.ReplaceAll(sentence(path.Base(p.Path), doc), "|", "\\|")
}

// names returns names in a list, each in quotes.
func names(list []string, quote string) string {
	if len(list) == 0 {
		return ""
	}
	return quote + strings.Join(list, quote+", "+quote) + quote
}
