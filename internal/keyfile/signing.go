package keyfile

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/durable"
)

// Signing is the key with which errand signs statements, and the public keys of its predecessors, newest first.
type Signing struct {
	Private ed25519.PrivateKey
	Created time.Time
	Retired []RetiredKey
}

// RetiredKey is a public key that no longer signs anything. What it signed before it was retired stays valid.
type RetiredKey struct {
	Public           ed25519.PublicKey
	Created, Retired time.Time
}

// maxRetired is the maximum number of stored predecessors. The oldest is never dropped: a rotation fails instead.
const maxRetired = 200

const (
	headerCreated = "Created"
	headerRetired = "Retired"
)

// ReadSigning reads the signing key in a file, or creates the file with a new one. The file has PEM blocks: the private key in PKCS #8, and
// the retired public keys in PKIX, each with its times as headers.
func ReadSigning(path string, now time.Time) (Signing, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newSigning(path, now, nil)
	}
	if err != nil {
		return Signing{}, fmt.Errorf("read the signing key: %w", err)
	}
	k, err := parseSigning(data)
	if err != nil {
		return Signing{}, fmt.Errorf("read the signing key %s: %w", path, err)
	}
	return k, nil
}

// RotateSigning writes a new signing key to a file, and keeps the public key of the present one. Only the owner of the file's folder may do
// it, so that errand can still read the file.
func RotateSigning(path string, now time.Time) (Signing, error) {
	if err := checkOwner(path); err != nil {
		return Signing{}, err
	}
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return Signing{}, err
	}
	defer unlock()
	old, err := ReadSigning(path, now)
	if err != nil {
		return Signing{}, err
	}
	if len(old.Retired) >= maxRetired {
		return Signing{}, fmt.Errorf("%s has %d retired keys already, and their signatures need them", path, len(old.Retired))
	}
	public, _ := old.Private.Public().(ed25519.PublicKey)
	return newSigning(path, now, slices.Insert(old.Retired, 0, RetiredKey{Public: public, Created: old.Created, Retired: wholeSeconds(now)}))
}

// lock keeps other rotations from running: one that has read the file before would lose the key that this one writes. The lock is on the
// folder, because the file is replaced.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the signing key: %w", err)
	}
	// Closing alone would not unlock while another goroutine starts a program, which has the file for a moment. Nothing was written.
	unlock = func() { _, _ = unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close() }
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		unlock()
		return nil, fmt.Errorf("another process uses %s: wait until it has ended, and repeat this command", dir)
	case err != nil:
		unlock()
		return nil, fmt.Errorf("lock the signing key: %w", err)
	}
	return unlock, nil
}

// newSigning creates a key and stores it with its predecessors.
func newSigning(path string, now time.Time, retired []RetiredKey) (Signing, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Signing{}, fmt.Errorf("make the signing key: %w", err)
	}
	k := Signing{Private: private, Created: wholeSeconds(now), Retired: retired}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return Signing{}, fmt.Errorf("make the signing key: %w", err)
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Headers: map[string]string{headerCreated: k.Created.Format(time.RFC3339)}, Bytes: der})
	for _, r := range retired {
		if der, err = x509.MarshalPKIXPublicKey(r.Public); err != nil {
			return Signing{}, fmt.Errorf("store a retired key: %w", err)
		}
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der, Headers: map[string]string{
			headerCreated: r.Created.Format(time.RFC3339), headerRetired: r.Retired.Format(time.RFC3339),
		}})...)
	}
	if err := durable.WriteFile(path, data, 0o600); err != nil {
		return Signing{}, fmt.Errorf("store the signing key: %w", err)
	}
	return k, nil
}

func parseSigning(data []byte) (k Signing, err error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		created, err := time.Parse(time.RFC3339, block.Headers[headerCreated])
		if err != nil {
			return Signing{}, fmt.Errorf("read when a key was created: %w", err)
		}
		if block.Type == "PRIVATE KEY" && k.Private == nil {
			private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return Signing{}, err
			}
			k.Private, _ = private.(ed25519.PrivateKey)
			k.Created = created
			continue
		}
		retired, err := time.Parse(time.RFC3339, block.Headers[headerRetired])
		if err != nil {
			return Signing{}, fmt.Errorf("read when a key was retired: %w", err)
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return Signing{}, err
		}
		key, ok := public.(ed25519.PublicKey)
		if !ok || len(k.Retired) >= maxRetired {
			return Signing{}, errors.New("a retired key is not an Ed25519 key, or there are too many of them")
		}
		k.Retired = append(k.Retired, RetiredKey{Public: key, Created: created, Retired: retired})
	}
	if k.Private == nil {
		return Signing{}, errors.New("it has no private Ed25519 key. Restore the file from a backup; without one, delete it, and what was signed can no longer be verified")
	}
	return k, nil
}

func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
