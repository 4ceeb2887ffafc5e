package config

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/secretscan"
)

// An Origin is where the value of a setting comes from.
type Origin string

// The origins. Those of secrets are named in the configuration file.
const (
	FromDefault    Origin = "default"
	FromConfig     Origin = "config" // the configuration file
	FromEnv        Origin = "env"    // an environment variable
	FromSecretFile Origin = "file"   // the file of a secret
)

// A Setting is one value of the configuration. It never contains a secret.
type Setting struct {
	// Key is the path of the key, such as "limits.turns", "models.anthropic.url" or "local.binds[0].path".
	Key string `json:"key"`
	// Value is a text, number, bool or list, or a mapping without keys or of numbers; durations are texts. It is absent for secrets, and for
	// an empty value that has no type.
	Value any `json:"value,omitempty"`
	// Secret marks a secret, and Set one that has a value.
	Secret bool `json:"secret,omitempty"`
	Set    bool `json:"set,omitempty"`
	// Origin is where the value comes from; From is the name of its environment variable, or the path of its file.
	Origin Origin `json:"origin"`
	From   string `json:"from,omitempty"`
	// Line is the line in the configuration file, 0 for a default.
	Line int `json:"line,omitempty"`
}

// Effective reads a configuration like Load, and returns all its values with their origins, in the order of config.example.yml.
func Effective(path string, env func(string) (string, bool)) ([]Setting, error) {
	c, doc, err := load(path, env)
	if err != nil {
		return nil, err
	}
	patterns, err := secretscan.LoadPatterns()
	if err != nil {
		return nil, fmt.Errorf("load the patterns of secrets: %w", err)
	}
	e := effective{doc: doc, secrets: secretscan.New(patterns, c.Secrets()...)}
	e.walk("", reflect.ValueOf(c))
	return e.settings, nil
}

// effective collects settings. It is guided by the types of the configuration alone, so a new key cannot be forgotten.
type effective struct {
	doc      *document
	secrets  *secretscan.Scanner
	settings []Setting
}

// walk adds the value of a key, or those of all keys below it.
func (e *effective) walk(key string, v reflect.Value) {
	switch t := v.Type(); {
	case t == reflect.TypeFor[Secret]():
		e.addSecret(key, v.Interface().(Secret))
	case t.Kind() == reflect.Pointer && !v.IsNil():
		e.walk(key, v.Elem())
	case t.Kind() == reflect.Struct && !hasOnlyNumbers(t):
		for i := range t.NumField() {
			if name, ok := Key(t.Field(i)); ok {
				e.walk(join(key, name), v.Field(i))
			}
		}
	case t.Kind() == reflect.Map && v.Len() > 0:
		names := map[string]reflect.Value{}
		for it := v.MapRange(); it.Next(); {
			names[it.Key().String()] = it.Value()
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			e.walk(join(key, cut(name)), names[name])
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && v.Len() > 0:
		for i := range v.Len() {
			e.walk(fmt.Sprintf("%s[%d]", key, i), v.Index(i))
		}
	default:
		e.add(key, plainValue(v))
	}
}

// add adds a value, unless it looks like a secret in the wrong place.
func (e *effective) add(key string, value any) {
	s := Setting{Key: key, Value: value, Origin: FromDefault}
	if e.doc.has(key) {
		s.Origin, s.Line = FromConfig, e.doc.lines[key]
	}
	if s.Origin == FromConfig && e.looksSecret(key, value) {
		s.Value, s.Secret, s.Set = nil, true, true
	}
	e.settings = append(e.settings, s)
}

// addSecret adds a secret by its origin.
func (e *effective) addSecret(key string, secret Secret) {
	s := Setting{Key: key, Secret: true, Set: secret.Reveal() != "", Origin: FromDefault}
	if e.doc.has(key) {
		s.Origin, s.Line = FromConfig, e.doc.lines[key]
	}
	switch kind, rest, _ := strings.Cut(secret.from, ":"); kind {
	case "env":
		s.Origin, s.From = FromEnv, rest
	case "file":
		s.Origin, s.From = FromSecretFile, rest
	}
	e.settings = append(e.settings, s)
}

// looksSecret reports whether a value contains a secret: one of errand's, one with a known form, or the password of a URL.
func (e *effective) looksSecret(key string, value any) bool {
	texts, _ := value.([]string)
	if text, ok := value.(string); ok {
		texts = []string{text}
	}
	name := key[strings.LastIndexByte(key, '.')+1:]
	return slices.ContainsFunc(texts, func(text string) bool {
		u, err := url.Parse(text)
		return err == nil && u.User != nil || len(e.secrets.Find(text)) > 0 || len(e.secrets.Find(fmt.Sprintf("%s=%q", name, text))) > 0
	})
}

// hasOnlyNumbers reports whether a type is a struct of numbers, such as a price, which is shown as one value.
func hasOnlyNumbers(t reflect.Type) bool {
	for i := range t.NumField() {
		if k := t.Field(i).Type.Kind(); k != reflect.Float64 && k != reflect.Int && k != reflect.Int64 || t.Field(i).Type == reflect.TypeFor[time.Duration]() {
			return false
		}
	}
	return t.NumField() > 0
}

// plainValue returns a value for JSON.
func plainValue(v reflect.Value) any {
	if d, ok := v.Interface().(time.Duration); ok {
		return FormatDuration(d)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.String {
			break
		}
		list := []string{}
		for i := range v.Len() {
			list = append(list, v.Index(i).String())
		}
		return list
	case reflect.Map:
		return map[string]any{}
	case reflect.Struct:
		numbers := map[string]any{}
		for i := range v.NumField() {
			if name, ok := Key(v.Type().Field(i)); ok && !v.Field(i).IsZero() {
				numbers[name] = v.Field(i).Interface()
			}
		}
		return numbers
	case reflect.Pointer:
		return nil
	}
	return v.Interface()
}

// Text returns the value on one line, as it could be written in YAML, or a few words about a secret.
func (s Setting) Text() string {
	switch {
	case s.Secret && s.Value == nil && s.From == "" && s.Set && s.Origin == FromConfig:
		return "(set, not shown)"
	case s.Secret && s.Set:
		return "(set)"
	case s.Secret && s.From != "":
		return "(not read, because it is not used)"
	case s.Secret:
		return "(not set)"
	}
	return yamlText(s.Value)
}

func yamlText(value any) string {
	var parts []string
	switch v := value.(type) {
	case nil:
		return `""`
	case string:
		if v == "" || strings.ContainsAny(v, "{}[]#&*!|>'\"%@`,\n\t") || strings.Contains(v, ": ") || strings.TrimSpace(v) != v {
			return strconv.Quote(v)
		}
		return v
	case []string:
		for _, text := range v {
			parts = append(parts, yamlText(text))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+": "+yamlText(v[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// OriginText returns the origin for people. File is the path of the configuration file.
func (s Setting) OriginText(file string) string {
	at := fmt.Sprintf("%s:%d", file, s.Line)
	switch {
	case s.Origin == FromEnv && s.Line > 0:
		return "environment variable " + s.From + " (" + at + ")"
	case s.Origin == FromSecretFile && s.Line > 0:
		return "file " + s.From + " (" + at + ")"
	case s.Origin == FromConfig:
		return at
	}
	return string(s.Origin)
}
