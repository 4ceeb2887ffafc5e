package main

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/config"
)

// key is one key of a configuration file.
type key struct {
	name    string   // within its section
	path    string   // "limits.turns"; list elements and named entries as "local.binds[].path", "models.NAME.url"
	kind    string   // kind of value, in a word or two
	doc     string   // a sentence about the value
	zero    string   // the default as YAML
	section bool     // it has keys below it
	entries []string // default entries of a mapping, as YAML
	keys    []key
}

// keysOf returns the keys of a struct type. Def is a value with the defaults, or invalid if there are none.
func (s *source) keysOf(t reflect.Type, prefix string, def reflect.Value) ([]key, error) {
	docs, err := s.load(t.PkgPath())
	if err != nil {
		return nil, err
	}
	var keys []key
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := config.Key(f)
		if !ok {
			continue
		}
		k := key{name: name, path: prefix + name, doc: docs.fields[t.Name()][f.Name], kind: kindOf(f.Type)}
		var d reflect.Value
		if def.IsValid() {
			d = def.Field(i)
			k.zero = yamlOf(d)
			k.entries = entriesOf(d)
		}
		if k.doc, err = s.describe(&k, f, d); err != nil {
			return nil, err
		}
		if k.doc == "" {
			return nil, fmt.Errorf("%s.%s has no doc comment", t, f.Name)
		}
		k.doc = sentence(f.Name, k.doc)
		keys = append(keys, k)
	}
	return keys, nil
}

// describe adds the keys below a key and returns its documentation. That of a section is the doc comment of its type.
func (s *source) describe(k *key, f reflect.StructField, def reflect.Value) (string, error) {
	t, prefix := f.Type, k.path+"."
	switch t.Kind() {
	case reflect.Map:
		t, prefix, def = t.Elem(), k.path+".NAME.", reflect.Value{}
	case reflect.Slice:
		t, prefix, def = t.Elem(), k.path+"[].", reflect.Value{}
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[config.Secret]() {
		return k.doc, nil
	}
	var err error
	if k.keys, err = s.keysOf(t, prefix, def); err != nil {
		return "", err
	}
	k.section = f.Type.Kind() == reflect.Struct
	if k.doc != "" {
		return k.doc, nil
	}
	docs, err := s.load(t.PkgPath())
	if err != nil {
		return "", err
	}
	return sentence(t.Name(), docs.types[t.Name()]), nil
}

// sentence turns "Turns bounds X." into "Bounds X.", because the table also has the key.
func sentence(name, doc string) string {
	rest, ok := strings.CutPrefix(doc, name+" ")
	if !ok {
		return doc
	}
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	if rest == "" {
		return doc
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// kindOf describes the values of a type.
func kindOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[config.Secret]():
		return "secret"
	case reflect.TypeFor[[]config.RepoCommand]():
		return "list of commands"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "list"
		}
		return "list of texts"
	case reflect.Map, reflect.Struct:
		return "mapping"
	default:
		return "text"
	}
}

// yamlOf returns a default as YAML on one line, or "" for a section.
func yamlOf(v reflect.Value) string {
	if d, ok := v.Interface().(time.Duration); ok {
		return config.FormatDuration(d)
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case reflect.String:
		return quote(v.String())
	case reflect.Slice:
		var list []string
		for i := range v.Len() {
			list = append(list, yamlOf(v.Index(i)))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case reflect.Map:
		if v.Len() > 0 {
			return "{…}"
		}
		return "{}"
	default:
		return ""
	}
}

// entriesOf returns the entries of a mapping of structs, each on a line, without keys that are not set.
func entriesOf(v reflect.Value) []string {
	if v.Kind() != reflect.Map || v.Type().Elem().Kind() != reflect.Struct {
		return nil
	}
	var lines []string
	for it := v.MapRange(); it.Next(); {
		var fields []string
		for i := range it.Value().NumField() {
			if name, ok := config.Key(it.Value().Type().Field(i)); ok && !it.Value().Field(i).IsZero() {
				fields = append(fields, name+": "+yamlOf(it.Value().Field(i)))
			}
		}
		lines = append(lines, fmt.Sprintf("%s: {%s}", it.Key(), strings.Join(fields, ", ")))
	}
	slices.Sort(lines)
	return lines
}

// quote quotes a text that YAML would otherwise parse differently.
func quote(s string) string {
	if s == "" || strings.ContainsAny(s, "{}[]#&*!|>'\"%@`,") || strings.Contains(s, ": ") {
		return strconv.Quote(s)
	}
	return s
}
