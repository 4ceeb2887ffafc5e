// Package naming fills in the templates for the names of branches, the first lines of commits and the titles of pull
// requests.
//
// Start with [Expand]. [Subject] gives a commit's first line the form of a template, and [BranchesOf] recognizes the
// branches that a template made.
package naming

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxSlug is the length of a Slug, in bytes.
const maxSlug = 40

var placeholder = regexp.MustCompile(`\{([a-z_]*)\}`)

// Values are the values of the templates for branches, commits and titles.
type Values struct {
	Key    string // the ticket key, often empty
	Number int    // of the issue
	Slug   string // Slug of the title
	Task   string // the work in one line
}

// Expand fills in a template with {key}, {number}, {slug} and {task}. The separators around an empty value are removed, so
// "{key}: {task}" without a key is only the task. For another placeholder it returns an error that lists the valid ones.
func Expand(template string, v Values) (string, error) {
	values := map[string]string{"key": v.Key, "number": fmt.Sprint(v.Number), "slug": v.Slug, "task": v.Task}
	var wrong string
	for _, m := range placeholder.FindAllStringSubmatch(template, -1) {
		if _, ok := values[m[1]]; !ok {
			wrong = m[0]
		}
	}
	if wrong != "" {
		return "", fmt.Errorf("expand template %q: %s is unknown, use {key}, {number}, {slug} or {task}", template, wrong)
	}
	for _, name := range []string{"key", "slug", "task"} {
		if values[name] == "" {
			template = dropEmpty(template, "{"+name+"}")
		}
	}
	out := placeholder.ReplaceAllStringFunc(template, func(p string) string { return values[p[1:len(p)-1]] })
	return strings.TrimSpace(out), nil
}

// dropEmpty removes a placeholder with the brackets around it and the separators after it (or, at
// the end, before it). Directly after a word, as in "feat({key}): {task}", the separators stay.
func dropEmpty(template, p string) string {
	quoted := regexp.QuoteMeta(p)
	after := regexp.MustCompile(`(^|[-_:/ ])(?:[\[(]?` + quoted + `[\])]?[-_:/ ]+)+`)
	template = after.ReplaceAllString(template, "$1")
	before := regexp.MustCompile(`[-_:/ ]*[\[(]?` + quoted + `[\])]?`)
	return before.ReplaceAllString(template, "")
}

// Slug returns a title in a form for branches: lower-case ASCII letters and digits with single hyphens, at most 40 bytes,
// truncated between words if possible. It is "task" if nothing is left.
func Slug(title string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(title) {
		switch {
		case r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			b.WriteRune(unicode.ToLower(r))
		case r == 'ß':
			b.WriteString("ss")
		case unicode.Is(unicode.Mn, r) || r == '\'' || r == '’':
		default:
			b.WriteByte('-')
		}
	}
	s := strings.Join(strings.FieldsFunc(b.String(), func(r rune) bool { return r == '-' }), "-")
	if len(s) > maxSlug {
		cut := s[:maxSlug+1]
		if i := strings.LastIndexByte(cut, '-'); i > maxSlug/2 {
			s = cut[:i]
		} else {
			s = s[:maxSlug]
		}
	}
	if s == "" {
		return "task"
	}
	return s
}

// ValidBranch reports whether a name is valid for a branch by the rules of git-check-ref-format --branch, and has at most
// 200 bytes.
func ValidBranch(name string) bool {
	if name == "" || name == "@" || name == "HEAD" || len(name) > 200 || strings.HasPrefix(name, "-") {
		return false
	}
	if strings.ContainsAny(name, " ~^:?*[\\") || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return false
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return false
		}
	}
	if strings.HasSuffix(name, ".") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
