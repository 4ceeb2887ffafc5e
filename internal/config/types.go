package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/errand-bot/errand/state/settings"
)

// ParseDuration parses a duration such as "90s", "2h30m" or "14d"; a day has 24 hours. The result is never negative.
func ParseDuration(text string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not a duration; write one such as 90s, 30m, 2h or 14d", cut(text))
	var days time.Duration
	if n, rest, ok := strings.Cut(text, "d"); ok {
		d, err := strconv.ParseUint(n, 10, 31)
		if err != nil || time.Duration(d) > math.MaxInt64/(24*time.Hour) {
			return 0, bad
		}
		if days, text = time.Duration(d)*24*time.Hour, rest; text == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || strings.ContainsAny(text, "+-") || d > math.MaxInt64-days {
		return 0, bad
	}
	return days + d, nil
}

// FormatDuration writes a duration in the notation that ParseDuration reads, in the largest units that fit: "14d", "1h30m".
func FormatDuration(d time.Duration) string {
	var b strings.Builder
	if days := d / (24 * time.Hour); days > 0 {
		fmt.Fprintf(&b, "%dd", days)
		d %= 24 * time.Hour
	}
	if d == 0 && b.Len() > 0 {
		return b.String()
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return b.String() + s
}

// readDuration makes the decoder use ParseDuration.
func readDuration(d *time.Duration, data []byte) error {
	var text string
	err := yaml.Unmarshal(data, &text)
	if err == nil {
		*d, err = ParseDuration(text)
	}
	return err
}

// expectedValue describes the expected value of a type.
func expectedValue(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "write a duration such as 90s, 30m, 2h or 14d"
	case reflect.TypeFor[Secret]():
		return "write env:NAME or file:/path"
	case reflect.TypeFor[settings.DraftMode]():
		return "write never, until-green or always"
	case reflect.TypeFor[RepoCommand]():
		return "write a command such as go test ./..., or a mapping with run, name, timeout and before_pr"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "write true or false"
	case reflect.Int, reflect.Int64:
		return "write a whole number"
	case reflect.Float64:
		return "write a number"
	case reflect.String:
		return "write a text, in quotes if it looks like a number"
	case reflect.Slice:
		return "write a list, such as [a, b]"
	case reflect.Map:
		return "write a mapping, name: value"
	default:
		return "write a mapping with the keys " + strings.Join(keysOf(t), ", ")
	}
}

// Key returns the key of a field, or false if it has none.
func Key(f reflect.StructField) (string, bool) {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name, name != "" && name != "-"
}

// fieldOf returns the field of a key.
func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if name, ok := Key(t.Field(i)); ok && name == key {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}

// keysOf returns the keys of a struct in the order of its fields.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if name, ok := Key(t.Field(i)); ok {
			keys = append(keys, name)
		}
	}
	return keys
}

// suggest returns a hint with the most similar key, or with all keys if none is similar.
func suggest(key string, t reflect.Type) string {
	best, least := "", 3
	for _, k := range keysOf(t) {
		if n := distance(key, k, least); n < least {
			best, least = k, n
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	return "the keys are " + strings.Join(keysOf(t), ", ")
}

// distance returns the number of letters that differ, up to limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// join returns the path of a key in a section.
func join(parent, key string) string {
	if parent == "" {
		return key
	}
	return parent + "." + key
}

// cut shortens text from a file for use in a message, and puts it on one line.
func cut(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > 120 {
		return string(r[:120]) + "…"
	}
	return s
}
