package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// Placeholders for lists of names in a check's command.
const (
	// PlaceFiles stands for the files of the head that differ from the base, without deleted ones.
	PlaceFiles = "{changed_files}"
	// PlaceModules stands for the folders of modules with changed or deleted files.
	PlaceModules = "{affected_modules}"
)

// usesChanges reports whether a command contains a placeholder.
func (s CheckSpec) usesChanges() bool {
	return slices.ContainsFunc(s.Commands, func(c CheckCommand) bool {
		return strings.Contains(c.Command, PlaceFiles) || strings.Contains(c.Command, PlaceModules)
	})
}

// moduleFiles returns the files that make a folder a module.
func moduleFiles() []string {
	return []string{"go.mod", "package.json", "pom.xml", "build.gradle", "build.gradle.kts", "Cargo.toml", "pyproject.toml"}
}

// difference is the difference to the base. Both lists are sorted bytewise.
type difference struct {
	files   []string
	modules []string
}

// compare compares two commits in the check's own repository, which borrows the objects of the workspace.
func (p *checkPlace) compare(ctx context.Context, base, head string) (difference, error) {
	var d difference
	if base == "" {
		return d, nil
	}
	if !changeset.IsID(base) {
		return d, fmt.Errorf("%q is not a commit id", base)
	}
	out, err := openRepo(filepath.Join(p.dir, "tree")).run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-abbrev", base, head)
	if err != nil {
		return d, fmt.Errorf("compare with the base: %w", err)
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		head, name := strings.Fields(fields[i]), fields[i+1]
		if len(head) != 5 {
			return d, errors.New("compare with the base: unexpected output of git")
		}
		if mode := head[1]; mode != "000000" && mode != string(changeset.ModeSubmodule) {
			d.files = append(d.files, name)
		}
		if module, ok := p.moduleOf(name); ok {
			d.modules = append(d.modules, module)
		}
	}
	slices.Sort(d.files)
	slices.Sort(d.modules)
	d.modules = slices.Compact(d.modules)
	return d, nil
}

// moduleOf returns the nearest folder at or above a path that is a module in the head; "." is the checkout.
func (p *checkPlace) moduleOf(name string) (string, bool) {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		for _, file := range moduleFiles() {
			if info, err := os.Lstat(filepath.Join(p.dir, "tree", dir, file)); err == nil && info.Mode().IsRegular() {
				return dir, true
			}
		}
		if dir == "." {
			return "", false
		}
	}
}

// fillPlaceholders replaces the placeholders in a command, in one pass, because a name may look like a placeholder. skipped
// explains why there is nothing to run.
func (d difference) fillPlaceholders(command string) (filled, skipped string) {
	lists := []struct {
		place, none string
		names       []string
	}{
		{PlaceFiles, "no changed file still exists", d.files},
		{PlaceModules, "no module is affected", d.modules},
	}
	var pairs []string
	for _, l := range lists {
		if strings.Contains(command, l.place) && len(l.names) == 0 {
			return "", l.none
		}
		pairs = append(pairs, l.place, quoteNames(l.names))
	}
	return strings.NewReplacer(pairs...).Replace(command), ""
}

// quoteNames formats names as words for sh, none of which is an option.
func quoteNames(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		if strings.HasPrefix(name, "-") {
			name = "./" + name
		}
		words[i] = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
