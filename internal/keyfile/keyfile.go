// Package keyfile stores errand's own keys in files. A key is created when it is first needed, and survives a power cut
// from the moment it is returned.
//
// Start with SSH and Secret.
package keyfile

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/durable"
)

// SSH reads the SSH key in a file, or creates the file with a new one.
func SSH(path string) (ssh.Signer, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("make the client key: %w", err)
		}
		block, err := ssh.MarshalPrivateKey(private, "errand")
		if err != nil {
			return nil, fmt.Errorf("make the client key: %w", err)
		}
		data = pem.EncodeToMemory(block)
		if err := durable.WriteFile(path, data, 0o600); err != nil {
			return nil, fmt.Errorf("store the client key: %w", err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("read the client key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("read the client key %s: %w", path, err)
	}
	return signer, nil
}

// Secret reads the secret in a file, or creates the file with 32 random bytes.
func Secret(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err == nil && len(data) >= 32 {
		return data, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	data = make([]byte, 32)
	if _, err := rand.Read(data); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if err := durable.WriteFile(path, data, 0o600); err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return data, nil
}
