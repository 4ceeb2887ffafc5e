package demo

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"golang.org/x/crypto/ssh"
)

// userData is what a box obeys of a server's user data.
type userData struct {
	hostKey []byte // private, PEM; nil: a new one
	client  ssh.PublicKey
}

// cloudConfig is the part of cloud-init's configuration that a box obeys. Packages, files and commands are for
// root on a machine of its own.
type cloudConfig struct {
	HostKeys   map[string]string `yaml:"ssh_keys"`
	Authorized []string          `yaml:"ssh_authorized_keys"`
	Users      []any             `yaml:"users"`
}

// parseUserData finds the host key and who may log in: the users' key, or the one that the server was ordered
// with. A box has one login, so more than one key is refused.
func parseUserData(text []byte, ordered []string) (userData, error) {
	var cfg cloudConfig
	if len(text) > 0 {
		if !bytes.HasPrefix(text, []byte("#cloud-config\n")) {
			return userData{}, errors.New("user data: a box only knows #cloud-config")
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
		user, _ := u.(map[string]any) // the word default has no keys of its own
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
			return userData{}, errors.New("user data: a box knows one client key, and here are several")
		}
		out.client = key
	}
	if out.client == nil {
		return userData{}, errors.New("user data: nobody may log in")
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
