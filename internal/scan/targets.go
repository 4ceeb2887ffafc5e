package scan

import (
	"regexp"
	"slices"
	"strings"
)

var (
	makeTarget = regexp.MustCompile(`(?m)^([A-Za-z0-9][A-Za-z0-9_.-]*(?:[ \t]+[A-Za-z0-9][A-Za-z0-9_.-]*)*)[ \t]*::?(?:[^=:]|$)`)
	justRecipe = regexp.MustCompile(`(?m)^@?([A-Za-z][A-Za-z0-9_-]*)(?:[ \t]+[^:=\n]*)?:(?:[^=]|$)`)
)

// targets proposes the targets of a Makefile, justfile or Taskfile in the root.
func targets(x *index) (list []proposal) {
	for _, f := range []struct {
		files  []string
		run    string
		word   string
		target func(text string) []string
	}{
		{[]string{"Makefile", "GNUmakefile", "makefile"}, "make", "target", makeTargets},
		{[]string{"justfile", "Justfile"}, "just", "recipe", justRecipes},
		{[]string{"Taskfile.yml", "Taskfile.yaml"}, "task", "task", taskNames},
	} {
		file := x.first(".", f.files...)
		if file == "" || x.text(file) == "" {
			continue
		}
		for _, name := range named(f.target(x.text(file))) {
			k, _ := scriptKind(name)
			list = append(list, proposal{kind: k, dir: ".", run: f.run + " " + name, origin: at(file, f.word+" "+name), rank: script})
		}
		if len(list) > 0 {
			return list // several such files usually say the same
		}
	}
	return list
}

func makeTargets(text string) (names []string) {
	for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
		for name := range strings.FieldsSeq(m[1]) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func justRecipes(text string) (names []string) {
	for _, m := range justRecipe.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

func taskNames(text string) []string {
	body, _ := parseYAML(text) // a file that is not YAML has no tasks
	return keysOf(child(body, "tasks"))
}
