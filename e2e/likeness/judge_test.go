package likeness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

func newReader(raw []byte) io.Reader { return bytes.NewReader(raw) }

// unlike is one difference between a recording and the published descriptions.
type unlike struct {
	where string // route with status, event with action, or name of a query
	what  string // place and complaint
}

func (u unlike) String() string { return u.where + ": " + u.what }

// schemas compiles each requested schema once.
type schemas struct {
	name     string
	compiler *jsonschema.Compiler
	made     map[string]*jsonschema.Schema
}

func newSchemas(name string, doc any) (*schemas, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: uriTemplate})
	if err := c.AddResource("mem:///"+name, doc); err != nil {
		return nil, fmt.Errorf("add %s: %w", name, err)
	}
	return &schemas{name: name, compiler: c, made: map[string]*jsonschema.Schema{}}, nil
}

// uriTemplate checks that the braces of a template match; the library's own check mistakes the slash in {/name} for the
// end of the path.
func uriTemplate(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	if plain := braces.ReplaceAllString(s, ""); strings.ContainsAny(plain, "{}") || !strings.Contains(plain, "://") {
		return errors.New("not a URI template")
	}
	return nil
}

// judge validates a value against the schema at the place in the document that the keys lead to.
func (s *schemas) judge(v any, place ...string) ([]string, error) {
	var at strings.Builder
	for _, p := range place {
		at.WriteString("/" + url.PathEscape(escape(p)))
	}
	key := at.String()
	sch, ok := s.made[key]
	if !ok {
		var err error
		if sch, err = s.compiler.Compile("mem:///" + s.name + "#" + key); err != nil {
			return nil, fmt.Errorf("compile schema at %s: %w", key, err)
		}
		s.made[key] = sch
	}
	var bad *jsonschema.ValidationError
	switch err := sch.Validate(v); {
	case err == nil:
		return nil, nil
	case errors.As(err, &bad):
		return rootCauses(complaints(bad)), nil
	default:
		return nil, fmt.Errorf("validate: %w", err)
	}
}

// unknown is the complaint about a property that no schema lists.
const unknown = "is not in GitHub's description"

// rootCauses removes complaints that follow from others: if one value is wrong, the surrounding schema fails, and all
// of its properties count as unknown, up to the top.
func rootCauses(all []string) []string {
	stray := func(c string) bool { return strings.HasSuffix(c, unknown) }
	if slices.ContainsFunc(all, func(c string) bool { return !stray(c) }) {
		return slices.DeleteFunc(all, stray)
	}
	deepest := 0
	for _, c := range all {
		deepest = max(deepest, strings.Count(c, "/"))
	}
	return slices.DeleteFunc(all, func(c string) bool { return strings.Count(c, "/") < deepest })
}

// badness orders alternatives: one that expects another type altogether was not meant.
func badness(complaints []string) int {
	if len(complaints) == 1 && strings.Contains(complaints[0], ", want ") {
		return 1000
	}
	return len(complaints)
}

var (
	braces = regexp.MustCompile(`\{[^{}]*\}`)
	host   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

var index = regexp.MustCompile(`/\d+(/|$)`)

// complaints lists the errors by their places. Of several alternatives it reports the best match.
func complaints(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		at := "/" + strings.Join(e.InstanceLocation, "/")
		at = index.ReplaceAllString(index.ReplaceAllString(at, "/*$1"), "/*$1")
		what := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		switch k := e.ErrorKind.(type) {
		case *kind.FalseSchema:
			what = unknown
		case *kind.Enum:
			what = fmt.Sprintf("%v is none of the values that are listed", k.Got)
		}
		return []string{at + " " + host.ReplaceAllString(what, "HOST")}
	}
	var best, all []string
	for _, c := range e.Causes {
		one := complaints(c)
		if best == nil || badness(one) < badness(best) {
			best = one
		}
		all = append(all, one...)
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		all = best
	}
	slices.Sort(all)
	return slices.Compact(all)
}
