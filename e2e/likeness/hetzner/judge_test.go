package hetzner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// operation is one method of one path, as described.
type operation struct {
	Params  []string       `json:"params"`
	Request any            `json:"request"`
	Answers map[string]any `json:"answers"`
}

// described is Hetzner's published description, with a schema compiler.
type described struct {
	Operations map[string]operation `json:"operations"`
	compiler   *jsonschema.Compiler
	made       map[string]*jsonschema.Schema
	used       map[string]bool
}

func read(t *testing.T) *described {
	t.Helper()
	raw, err := os.ReadFile("described.json")
	if err != nil {
		t.Fatal(err)
	}
	d := &described{compiler: jsonschema.NewCompiler(), made: map[string]*jsonschema.Schema{}, used: map[string]bool{}}
	if err := json.Unmarshal(raw, d); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("mem:///described.json", doc); err != nil {
		t.Fatal(err)
	}
	return d
}

// unlike is one difference between a recording and the description.
type unlike struct{ where, what string }

// judge returns the differences of a recording.
func (d *described) judge(rec simhetzner.Recorded) ([]unlike, error) {
	name := rec.Method + " " + rec.Route
	where := fmt.Sprintf("%s %d", name, rec.Status)
	op, ok := d.Operations[name]
	if !ok {
		if rec.Status >= 400 {
			return nil, nil // the answer reports the missing route
		}
		return []unlike{{where, "is not described"}}, nil
	}
	d.used[name] = true
	status := fmt.Sprint(rec.Status)
	if rec.Status >= 400 {
		status = status[:1] + "xx"
	}
	if _, ok := op.Answers[status]; !ok {
		return []unlike{{where, "the status is not described"}}, nil
	}
	var out []unlike
	found, err := d.hold(rec.Body, name, "answers", status)
	if err != nil {
		return nil, err
	}
	if rec.Status < 400 {
		asked, err := d.asked(rec, name, op)
		if err != nil {
			return nil, err
		}
		found = append(found, asked...)
	}
	for _, what := range found {
		out = append(out, unlike{where, what})
	}
	return out, nil
}

// asked checks a request that was accepted.
func (d *described) asked(rec simhetzner.Recorded, name string, op operation) (out []string, err error) {
	query, err := url.ParseQuery(rec.Query)
	if err != nil {
		return nil, fmt.Errorf("parse query: %w", err)
	}
	for _, k := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(op.Params, k) {
			out = append(out, "there is no parameter "+k)
		}
	}
	if op.Request == nil || len(rec.Request) == 0 {
		return out, nil
	}
	found, err := d.hold(rec.Request, name, "request")
	for _, what := range found {
		out = append(out, "request: "+what)
	}
	return out, err
}

// hold checks JSON against the schema at a place in the file.
func (d *described) hold(raw []byte, name string, place ...string) ([]string, error) {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	at := "#/operations/" + url.PathEscape(escape.Replace(name)) + "/" + strings.Join(place, "/")
	if d.made[at] == nil {
		s, err := d.compiler.Compile("mem:///described.json" + at)
		if err != nil {
			return nil, fmt.Errorf("compile schema of %s: %w", at, err)
		}
		d.made[at] = s
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("parse recorded JSON: %w", err)
	}
	var bad *jsonschema.ValidationError
	switch err := d.made[at].Validate(v); {
	case err == nil:
		return nil, nil
	case errors.As(err, &bad):
		return complaints(bad), nil
	default:
		return nil, fmt.Errorf("validate: %w", err)
	}
}

var index = regexp.MustCompile(`/\d+(/|$)`)

// complaints lists the errors by their places.
func complaints(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		at := index.ReplaceAllString("/"+strings.Join(e.InstanceLocation, "/"), "/*$1")
		return []string{at + " " + e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}
	}
	var all []string
	for _, c := range e.Causes {
		all = append(all, complaints(c)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// recordings reads a directory that the simulator has written.
func recordings(t *testing.T, dir string) []simhetzner.Recorded {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "hetzner-*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []simhetzner.Recorded
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var rec simhetzner.Recorded
		if err := json.Unmarshal(raw, &rec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, rec)
	}
	return out
}
