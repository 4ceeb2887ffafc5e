package demo

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"golang.org/x/crypto/ssh"
)

// userData is the supported part of a server's user data.
type userData struct {
	hostKey []byte // private key in PEM form; nil means a new one
	client  ssh.PublicKey
}

// cloudConfig is the supported part of cloud-init's configuration. Packages, files and commands require root on a
// separate machine.
type cloudConfig struct {
	HostKeys   map[string]string `yaml:"ssh_keys"`
	Authorized []string          `yaml:"ssh_authorized_keys"`
	Users      []any             `yaml:"users"`
}

// parseUserData returns the host key and the accepted client key: the users' key, or the one the server was ordered
// with. A sandbox has one login, so more than one key is refused.
func parseUserData(text []byte, ordered []string) (userData, error) {
	var cfg cloudConfig
	if len(text) > 0 {
		if !bytes.HasPrefix(text, []byte("#cloud-config\n")) {
			return userData{}, errors.New("user data: sandboxes only support #cloud-config")
		}
		if err := yaml.Unmarshal(text, &cfg); err != nil {
			return userData{}, fmt.Errorf("user data: %w", err)
		}
	}
	var out userData
	if key := cfg.HostKeys["ed25519_private"]; key != "" {
		out.hostKey = []byte(key)
	}
	lines := append(append([]string{}, cfg.Authorized...), ordered...)
	for _, u := range cfg.Users {
		user, _ := u.(map[string]any) // the entry "default" has no keys
		keys, _ := user["ssh_authorized_keys"].([]any)
		for _, k := range keys {
			lines = append(lines, fmt.Sprint(k))
		}
	}
	for _, line := range lines {
		key, err := parseKey(line)
		switch {
		case err != nil:
			return userData{}, fmt.Errorf("user data: %w", err)
		case out.client != nil && !bytes.Equal(out.client.Marshal(), key.Marshal()):
			return userData{}, errors.New("user data: sandboxes support a single client key")
		}
		out.client = key
	}
	if out.client == nil {
		return userData{}, errors.New("user data: no client key")
	}
	return out, nil
}

func parseKey(line string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, fmt.Errorf("parse a client key: %w", err)
	}
	return key, nil
}
