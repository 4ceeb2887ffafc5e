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

// What stands in a check's command for a list of names.
const (
	// PlaceFiles is for the files of the head that differ from the base; those that are deleted are not among them.
	PlaceFiles = "{changed_files}"
	// PlaceModules is for the folders of modules that something changed in, or was deleted from.
	PlaceModules = "{affected_modules}"
)

// asksForChanges reports whether a command has a place for what changed.
func (s CheckSpec) asksForChanges() bool {
	return slices.ContainsFunc(s.Commands, func(c CheckCommand) bool {
		return strings.Contains(c.Command, PlaceFiles) || strings.Contains(c.Command, PlaceModules)
	})
}

// moduleFiles are the files that make a folder a module.
func moduleFiles() []string {
	return []string{"go.mod", "package.json", "pom.xml", "build.gradle", "build.gradle.kts", "Cargo.toml", "pyproject.toml"}
}

// difference is what differs from the base, each list in the order of its bytes.
type difference struct {
	files   []string
	modules []string
}

// differs compares two commits in the check's own repository, which borrows the objects of the workspace.
func (p *checkPlace) differs(ctx context.Context, base, head string) (difference, error) {
	var d difference
	if base == "" {
		return d, nil
	}
	if !changeset.IsID(base) {
		return d, fmt.Errorf("%q is no commit id", base)
	}
	out, err := openRepo(filepath.Join(p.dir, "tree")).run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--no-abbrev", base, head)
	if err != nil {
		return d, fmt.Errorf("compare with the base: %w", err)
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		head, name := strings.Fields(fields[i]), fields[i+1]
		if len(head) != 5 {
			return d, errors.New("compare with the base: git printed something else than differences")
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

// moduleOf is the nearest folder at or above a path that is a module in the head; "." is the checkout.
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

// fill puts the lists into a command, in one go: a name may look like a placeholder. skipped says why there is
// nothing to run.
func (d difference) fill(command string) (filled, skipped string) {
	lists := []struct {
		place, none string
		names       []string
	}{
		{PlaceFiles, "no file changed that is still there", d.files},
		{PlaceModules, "no module is affected", d.modules},
	}
	var pairs []string
	for _, l := range lists {
		if strings.Contains(command, l.place) && len(l.names) == 0 {
			return "", l.none
		}
		pairs = append(pairs, l.place, quoted(l.names))
	}
	return strings.NewReplacer(pairs...).Replace(command), ""
}

// quoted makes words for sh of names, none of which can be taken for an option.
func quoted(names []string) string {
	words := make([]string, len(names))
	for i, name := range names {
		if strings.HasPrefix(name, "-") {
			name = "./" + name
		}
		words[i] = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
