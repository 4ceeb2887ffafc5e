package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/errand-bot/errand/internal/remote"
)

// Secret is a value that must not be written in the file: `env:NAME`, `file:/path`, or, with a simulated GitHub on this
// host only, `value:TEXT`. Reveal returns the value after Load has resolved it. Every other way of printing it (logs,
// JSON, YAML, any verb) shows its source only.
type Secret struct {
	from string
	// value is a pointer so that even a dump of unexported fields does not show it.
	value *string
}

var (
	_ fmt.Formatter                = Secret{}
	_ yaml.BytesMarshaler          = Secret{}
	_ yaml.BytesUnmarshaler        = (*Secret)(nil)
	_ interface{ String() string } = Secret{}
)

// UnmarshalYAML stores the source of the secret; Load resolves it.
func (s *Secret) UnmarshalYAML(data []byte) error {
	var text string
	if err := yaml.Unmarshal(data, &text); err != nil {
		return err
	}
	s.from = text
	return nil
}

// Reveal returns the secret's value, or an empty string if none is set.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Lines returns the lines of the value that are not empty: the secrets that are accepted, the newest first.
func (s Secret) Lines() (lines []string) {
	for line := range strings.Lines(s.Reveal()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// Set reports whether the file names a source.
func (s Secret) Set() bool { return s.from != "" }

// String returns the source of the secret, never its value.
func (s Secret) String() string {
	if kind, _, _ := strings.Cut(s.from, ":"); kind != "env" && kind != "file" && kind != "" {
		return "value:…" // the text in the file may be the secret itself
	}
	return s.from
}

// Format prints String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns String; JSON and YAML use it too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML returns String.
func (s Secret) MarshalYAML() ([]byte, error) { return yaml.Marshal(s.String()) }

// maxSecret is the maximum size of a secret's file in bytes.
const maxSecret = 64 << 10

// resolve reads the value. standIns is true if GitHub is a simulator on this host.
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
		value, err = readSecret(rest)
		if errors.Is(err, fs.ErrPermission) {
			id := os.Geteuid()
			return fmt.Errorf("%w; if errand runs as this user (%d), let it read the file: `sudo chown %[2]d %[3]s && sudo chmod 0600 %[3]s`; otherwise run this as errand's user", err, id, remote.Quote(rest))
		}
		if err != nil {
			return fmt.Errorf("%w; write the path of a file that errand can read", err)
		}
	case ok && kind == "value" && standIns:
		value = rest
	default:
		return errors.New("this file must not contain secrets; write env:NAME or file:/path")
	}
	s.value = &value
	return nil
}

// file returns the path of the file that holds the secret, or "" if no file does.
func (s Secret) file() string {
	path, _ := strings.CutPrefix(s.from, "file:")
	if path == s.from {
		return ""
	}
	return path
}

// readBounded reads a secret's file of at most maxSecret bytes.
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

// readSecret reads a secret's file and trims white space.
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
