package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestProviderSecretsAreRedacted: the row of each provider lists every secret of its section, so that each is read, and
// redacted everywhere. The sections are the fields of Config with the names of providers.
func TestProviderSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range providers {
		var c Config
		v := reflect.ValueOf(&c).Elem()
		for i := range v.NumField() {
			if yamlKey(v.Type().Field(i)) != p.name {
				continue
			}
			for key, secret := range secretsIn(v.Field(i), p.name) {
				found++
				value := "secret of " + key
				secret.value = &value
				if p.secrets == nil || p.secrets(&c)[key] != secret {
					t.Errorf("%s is not among the secrets of provider %s", key, p.name)
				}
				if !slices.Contains(c.Secrets(), value) {
					t.Errorf("%s is not redacted", key)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no section has a secret")
	}
}

// secretsIn returns the secrets of a section by their keys.
func secretsIn(section reflect.Value, key string) map[string]*Secret {
	list := map[string]*Secret{}
	for i := range section.NumField() {
		field, at := section.Field(i), key+"."+yamlKey(section.Type().Field(i))
		if s, ok := field.Addr().Interface().(*Secret); ok {
			list[at] = s
		} else if field.Kind() == reflect.Struct {
			for k, s := range secretsIn(field, at) {
				list[k] = s
			}
		}
	}
	return list
}

func yamlKey(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}
