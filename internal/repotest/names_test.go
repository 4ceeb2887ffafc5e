package repotest_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	goName    = regexp.MustCompile("`([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)*)(?:\\(\\))?`")
	goFile    = regexp.MustCompile("`([\\w.*-]+\\.go)`")
	recipe    = regexp.MustCompile(`(?m)^### `)
	ownFile   = regexp.MustCompile(`\]\(([a-z.][^):#]*)(?:#[^)]*)?\)`)
	startHint = regexp.MustCompile(`(?s)\bStart (?:here:|with|at|reading at) (.+?)\.(?:\s|$)`)
	hintWord  = regexp.MustCompile(`[A-Za-z][\w*]*(?:\.\w+)*`)
)

// foreign has the names in documents that look like Go and are not errand's.
func foreign() map[string]string {
	const github, models, http = "a field or mutation of GitHub's GraphQL API", "a parameter of a model's API", "part of HTTP"
	return map[string]string{
		"updateRefs": github, "beforeOid": github, "statusCheckRollup": github, "updatePullRequestBranch": github, "markPullRequestReadyForReview": github, "mergePullRequest": github,
		"disablePullRequestAutoMerge": github, "enqueuePullRequest": github, "dequeuePullRequest": github, "expectedHeadOid": github,
		"mergeStateStatus": github, "candidateCount": models, "maxOutputTokens": models,
		"ETag": http, "Forwarded": http, "HttpOnly": http,
	}
}

// declarations are the names that some Go files declare.
type declarations struct {
	top     map[string]map[string]bool // names outside of functions, by the name of the package
	members map[string]map[string]bool // fields and methods, by the name of the type
	embeds  map[string][]string        // embedded types, by the name of the type
	all     map[string]bool            // all of these names
}

// declaredIn returns the names that files declare.
func declaredIn(list []file) declarations {
	d := declarations{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string][]string{}, map[string]bool{}}
	for _, f := range list {
		pkg := strings.TrimSuffix(f.ast.Name.Name, "_test")
		if pkg == "main" {
			pkg = filepath.Base(f.pkg())
		}
		for _, decl := range f.ast.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					d.add(d.top, pkg, decl.Name)
				} else if on := typeName(decl.Recv.List[0].Type); on != "" {
					d.add(d.members, on, decl.Name)
				}
			case *ast.GenDecl:
				d.addSpecs(pkg, decl)
			}
		}
	}
	return d
}

func (d declarations) add(to map[string]map[string]bool, key string, names ...*ast.Ident) {
	if to[key] == nil {
		to[key] = map[string]bool{}
	}
	for _, n := range names {
		to[key][n.Name], d.all[n.Name] = true, true
	}
}

// addSpecs adds the names of a declaration of constants, variables or types.
func (d declarations) addSpecs(pkg string, decl *ast.GenDecl) {
	if decl.Tok == token.IMPORT {
		return
	}
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			d.add(d.top, pkg, spec.Names...)
		case *ast.TypeSpec:
			d.add(d.top, pkg, spec.Name)
			d.add(d.members, spec.Name.Name)
			ast.Inspect(spec.Type, func(n ast.Node) bool { // also in structs within the type
				if field, ok := n.(*ast.Field); ok && len(field.Names) > 0 {
					d.add(d.members, spec.Name.Name, field.Names...)
				} else if ok {
					d.embeds[spec.Name.Name] = append(d.embeds[spec.Name.Name], typeName(field.Type))
				}
				_, isFunc := n.(*ast.FuncType)
				return !isFunc
			})
		}
	}
}

// typeName returns the name of a type, without its package, pointer and parameters; "" for other expressions.
func typeName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.IndexExpr:
		return typeName(x.X)
	}
	return ""
}

// hasMember reports whether a type of this name has the field or method, itself or by an embedded type.
func (d declarations) hasMember(on, name string) bool {
	return d.members[on][name] || slices.ContainsFunc(d.embeds[on], func(e string) bool { return e != on && d.hasMember(e, name) })
}

// check reports whether a text is a Go name, and whether it is declared: a name with capitals and small letters, a
// type.Member, or a package.Name, which may be followed by a member.
func (d declarations) check(name string) (isGo, ok bool) {
	first, rest, qualified := strings.Cut(name, ".")
	second, member, more := strings.Cut(rest, ".")
	switch {
	case !qualified:
		return isMixed(name), d.all[name]
	case unicode.IsUpper(rune(first[0])):
		return isMixed(first) && isMixed(second), d.members[first] != nil && d.hasMember(first, second) && !more
	}
	inPackage := d.top[first][second] && (!more || d.hasMember(second, member))
	return isMixed(second), inPackage || !more && d.hasMember(first, second)
}

// isMixed reports whether a name has capitals and small letters, as only Go names do here.
func isMixed(name string) bool {
	return strings.ContainsFunc(name, unicode.IsUpper) && strings.ContainsFunc(name, unicode.IsLower) && !strings.Contains(name, "_")
}

// Every Go name and every Go file that a document names in backquotes exists. CHANGELOG.md may name those that were
// removed.
func TestMentionedNamesExist(t *testing.T) {
	t.Parallel()
	d, exempt, used, n := declaredIn(goFiles(t)), foreign(), map[string]bool{}, 0
	base := map[string]bool{}
	for _, f := range goFiles(t) {
		base[filepath.Base(f.path)] = true
	}
	docs := documents(t)
	delete(docs, "CHANGELOG.md")
	for path, text := range docs {
		text = code.ReplaceAllString(text, "")
		for _, m := range goFile.FindAllStringSubmatch(text, -1) {
			if n++; !base[m[1]] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
		for _, m := range goName.FindAllStringSubmatch(text, -1) {
			isGo, ok := d.check(m[1])
			switch {
			case !isGo:
			case exempt[m[1]] != "":
				used[m[1]] = true
			case !ok:
				t.Errorf("%s names %s, which is not declared; if it is not errand's, add it to foreign", path, m[1])
			default:
				n++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exempt)) {
		if !used[name] {
			t.Errorf("no document names %s, which is in foreign", name)
		}
	}
	if n < 200 {
		t.Errorf("only %d names were checked", n)
	}
}

// The check notices wrong names.
func TestWrongNamesAreNoticed(t *testing.T) {
	t.Parallel()
	d := declaredIn(goFiles(t))
	for name, want := range map[string]struct{ isGo, ok bool }{
		"ParseRepo": {true, true}, "ParseRepoFor": {true, false}, "eventLabel": {true, true}, "eventLabels": {true, false},
		"Task.HasIdleVM": {true, true}, "Task.Rests": {true, false}, "Task.Waiting": {true, true}, "Provider.Create": {true, true},
		"Tasks.Resting": {true, false}, "config.ParseRepo": {true, true}, "state.ParseRepo": {true, false}, "nowhere.ParseRepo": {true, false},
		"state.Task.HasIdleVM": {true, true}, "state.Task.Rests": {true, false},
		"limits.turns": {}, "prices.NAME.input": {}, "retry": {}, "VM": {},
	} {
		isGo, ok := d.check(name)
		if isGo != want.isGo || isGo && ok != want.ok {
			t.Errorf("check(%q) = %v, %v; want %v, %v", name, isGo, ok, want.isGo, want.ok)
		}
	}
}

// The names in a recipe of CONTRIBUTING.md are in the files and folders that the recipe names, and no recipe has more than
// ten lines.
func TestRecipesCanBeFollowed(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(string(read(t, "CONTRIBUTING.md")), "\n## Recipes\n")
	text, _, _ = strings.Cut(text, "\n## ")
	list := recipe.Split(text, -1)[1:]
	if len(list) < 8 {
		t.Errorf("only %d recipes were found", len(list))
	}
	for _, text := range list {
		if !strings.HasPrefix(text, "Add ") {
			continue
		}
		title, steps, _ := strings.Cut(text, "\n")
		if n := strings.Count(strings.TrimSpace(steps), "\n") + 1; n > 10 {
			t.Errorf("%q has %d lines, more than 10", title, n)
		}
		if n := checkNames(t, title, steps); n < 2 {
			t.Errorf("%q: only %d names were checked", title, n)
		}
	}
}

// checkNames checks the names in a text against the files and folders that it links to or names in backquotes, and returns
// their number. They declare every name, or use it as a string, unless it
// is a kind of job or event.
func checkNames(t *testing.T, at, text string) (checked int) {
	t.Helper()
	named := map[string]bool{}
	for _, m := range ownFile.FindAllStringSubmatch(text, -1) {
		named[strings.TrimSuffix(strings.TrimPrefix(m[1], "../"), "/")] = true
	}
	for _, m := range mentioned.FindAllStringSubmatch(text, -1) {
		paths, _ := filepath.Glob(filepath.Join(root, m[1]))
		for _, path := range paths {
			named[filepath.ToSlash(strings.TrimPrefix(path, root+"/"))] = true
		}
	}
	var list []file
	var literals strings.Builder
	literals.Write(slices.Concat(read(t, "state/job.go"), read(t, "state/event/kind.go")))
	for _, f := range goFiles(t) {
		if named[f.path] || named[f.pkg()] {
			list = append(list, f)
			literals.Write(f.data)
		}
	}
	if len(list) == 0 {
		t.Errorf("%s links to no Go file", at)
	}
	d := declaredIn(list)
	for _, m := range goName.FindAllStringSubmatch(text, -1) {
		checked++
		isGo, ok := d.check(m[1])
		first, second, qualified := strings.Cut(m[1], ".")
		switch {
		case isGo && !ok, !isGo && d.members[first] != nil && qualified && !d.hasMember(first, second):
			t.Errorf("%s names %s, which none of its files declares", at, m[1])
		case !isGo && !qualified && !d.all[m[1]] && !strings.Contains(literals.String(), `"`+m[1]+`"`):
			t.Errorf("%s names %s, which none of its files declares", at, m[1])
		}
	}
	return checked
}

// Every package's doc comment says where to start reading: with names of the package, or with files.
func TestPackageDocsSayWhereToStart(t *testing.T) {
	t.Parallel()
	docs, byPackage := map[string]string{}, map[string][]file{}
	for _, f := range goFiles(t) {
		byPackage[f.pkg()] = append(byPackage[f.pkg()], f)
		if !f.isTest() {
			docs[f.pkg()] += f.ast.Doc.Text()
		}
	}
	for pkg, doc := range docs {
		m := startHint.FindStringSubmatch(doc)
		if m == nil {
			t.Errorf("%s: the package doc does not say where to start (Start here: …, or Start with …, Start at …, Start reading at …)", pkg)
			continue
		}
		d, found := declaredIn(byPackage[pkg]), 0
		for _, word := range hintWord.FindAllString(m[1], -1) {
			exists, mustExist := d.hinted(pkg, word)
			if exists {
				found++
			} else if mustExist {
				t.Errorf("%s: the package doc says to start with %s, which does not exist there", pkg, word)
			}
		}
		if found == 0 {
			t.Errorf("%s: the package doc names nothing to start with: %q", pkg, m[0])
		}
	}
}

// hinted reports whether a word of a hint names a file or something that the package declares, and whether it has to: other
// words are prose.
func (d declarations) hinted(pkg, word string) (exists, mustExist bool) {
	first, second, qualified := strings.Cut(word, ".")
	switch {
	case slices.Contains([]string{".go", ".yml"}, filepath.Ext(word)):
		in, _ := filepath.Glob(filepath.Join(root, pkg, word))
		top, _ := filepath.Glob(filepath.Join(root, word))
		return len(in)+len(top) > 0, true
	case qualified:
		return d.hasMember(first, second), true
	}
	return d.all[word], isMixed(word)
}
