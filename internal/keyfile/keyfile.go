// Package keyfile stores errand's own keys in files. A key is created when it is first needed, and survives a power cut
// from the moment it is returned.
//
// Start with SSH, Secret, Pair and Signing.
package keyfile

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

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

// size is the size of a new secret, in bytes.
const size = 32

// Pair is a secret that can be replaced: for a while, the previous one is accepted too.
type Pair struct {
	Current  []byte
	Previous []byte // nil unless the secret is being replaced
}

// ReadPair reads the secret in a file, and the previous one that follows it if the secret was replaced by [Replace]. It creates
// the file if it does not exist.
func ReadPair(path string) (Pair, error) {
	data, err := Secret(path)
	if err != nil || len(data) < 2*size {
		return Pair{Current: data}, err
	}
	return Pair{Current: data[:size], Previous: data[size:]}, nil
}

// ErrTwoSecrets means that the secret before the present one is still in the file.
var ErrTwoSecrets = errors.New("the previous secret is still accepted")

// Replace writes a new secret to a file, before the present one. It returns ErrTwoSecrets, and changes nothing, if there are two. Only
// the owner of the file's folder may do it, so that errand can still read the file.
func Replace(path string) error {
	if err := checkOwner(path); err != nil {
		return err
	}
	old, err := Secret(path)
	if err != nil {
		return err
	}
	if len(old) >= 2*size {
		return ErrTwoSecrets
	}
	next := make([]byte, size, size+len(old))
	if _, err := rand.Read(next); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	return durable.WriteFile(path, append(next, old...), 0o600)
}

// checkOwner returns an error unless the folder of a file belongs to the user of this process.
func checkOwner(path string) error {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("read the owner of the data folder: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: run this command as that user, such as with `sudo -u '#%[2]d'`", filepath.Dir(path), stat.Uid)
	}
	return nil
}

// Forget removes the previous secret from a file.
func Forget(path string) error {
	p, err := ReadPair(path)
	if err != nil || p.Previous == nil {
		return err
	}
	return durable.WriteFile(path, p.Current, 0o600)
}

// Secret reads the secret in a file, or creates the file with 32 random bytes.
func Secret(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err == nil && len(data) >= size {
		return data, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	data = make([]byte, size)
	if _, err := rand.Read(data); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if err := durable.WriteFile(path, data, 0o600); err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return data, nil
}
