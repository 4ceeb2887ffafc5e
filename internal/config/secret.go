package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
)

// Secret is a value that must not stand in the file: `env:NAME`, `file:/path`, or `value:TEXT` with
// stand-ins on this machine only. Reveal returns it after Load has resolved it; every other way of
// printing it, in logs, JSON, YAML or with any verb, shows where it comes from.
type Secret struct {
	from string
	// value is behind a pointer, so that even a dump of unexported fields does not show it.
	value *string
}

var (
	_ fmt.Formatter                = Secret{}
	_ yaml.BytesMarshaler          = Secret{}
	_ yaml.BytesUnmarshaler        = (*Secret)(nil)
	_ interface{ String() string } = Secret{}
)

// UnmarshalYAML keeps where the secret comes from; Load resolves it.
func (s *Secret) UnmarshalYAML(data []byte) error {
	var text string
	if err := yaml.Unmarshal(data, &text); err != nil {
		return err
	}
	s.from = text
	return nil
}

// Reveal returns the secret's value, or nothing if none is set.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Set reports whether the file names a source.
func (s Secret) Set() bool { return s.from != "" }

// String tells where the secret comes from, never what it is.
func (s Secret) String() string {
	if kind, _, _ := strings.Cut(s.from, ":"); kind != "env" && kind != "file" && kind != "" {
		return "value:…" // what stands in the file may be the secret itself
	}
	return s.from
}

// Format prints String, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns String; JSON and YAML use it, too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML returns String.
func (s Secret) MarshalYAML() ([]byte, error) { return yaml.Marshal(s.String()) }

// maxSecret bounds a secret's file, in bytes.
const maxSecret = 64 << 10

// resolve reads the value. standIns says that GitHub is a stand-in on this machine.
func (s *Secret) resolve(env func(string) (string, bool), standIns bool) error {
	kind, rest, ok := strings.Cut(s.from, ":")
	var value string
	switch {
	case s.from == "":
		return nil
	case ok && kind == "env":
		v, found := env(rest)
		if !found || v == "" {
			return fmt.Errorf("the environment variable %s is not set; set it, or write file:/path", rest)
		}
		value = v
	case ok && kind == "file":
		var err error
		if value, err = readSecret(rest); err != nil {
			return fmt.Errorf("%w; write the path of a file that errand can read", err)
		}
	case ok && kind == "value" && standIns:
		value = rest
	default:
		return errors.New("a secret does not stand in this file; write env:NAME or file:/path")
	}
	s.value = &value
	return nil
}

// readBounded reads a secret's file.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(data) > maxSecret {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxSecret)
	}
	return data, err
}

// readSecret reads a secret's file. Space around it does not count.
func readSecret(path string) (string, error) {
	data, err := readBounded(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	if value == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return value, nil
}
