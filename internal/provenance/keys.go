package provenance

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/errand-bot/errand/internal/keyfile"
)

// KeysPath is where a deployment publishes its public keys.
const KeysPath = "/.well-known/errand-provenance-keys.json"

// Key is a public key that verification trusts.
type Key struct {
	ID     string
	Public ed25519.PublicKey
	// Retired is when the key was replaced, zero if it is in use or not known.
	Retired time.Time
}

// keyFile is the form in which a deployment publishes its keys.
type keyFile struct {
	Keys []publishedKey `json:"keys"`
}

type publishedKey struct {
	ID        string    `json:"keyId"`
	Algorithm string    `json:"algorithm"`
	PublicKey string    `json:"publicKey"` // PEM
	Created   time.Time `json:"created"`
	Retired   time.Time `json:"retired,omitzero"`
}

const algorithm = "ed25519"

// PublishKeys returns the public keys of a deployment as JSON: the present one and its predecessors. ParseKeys reads it.
func PublishKeys(k keyfile.Signing) ([]byte, error) {
	public, _ := k.Private.Public().(ed25519.PublicKey)
	var f keyFile
	add := func(public ed25519.PublicKey, created, retired time.Time) error {
		id, err := dsse.SHA256KeyID(public)
		if err != nil {
			return fmt.Errorf("identify a key: %w", err)
		}
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			return fmt.Errorf("encode a key: %w", err)
		}
		text := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		f.Keys = append(f.Keys, publishedKey{ID: id, Algorithm: algorithm, PublicKey: text, Created: created, Retired: retired})
		return nil
	}
	err := add(public, k.Created, time.Time{})
	for _, r := range k.Retired {
		err = errors.Join(err, add(r.Public, r.Created, r.Retired))
	}
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(f, "", "  ")
}

// maxKeys is the maximum number of keys in a file.
const maxKeys = 500

// ParseKeys reads the keys in a file: what a deployment publishes at KeysPath, or PEM blocks with public keys.
func ParseKeys(data []byte) ([]Key, error) {
	var f keyFile
	if err := json.Unmarshal(data, &f); err != nil {
		for block, rest := pem.Decode(data); block != nil && len(f.Keys) <= maxKeys; block, rest = pem.Decode(rest) {
			f.Keys = append(f.Keys, publishedKey{PublicKey: string(pem.EncodeToMemory(block))})
		}
	}
	if len(f.Keys) == 0 || len(f.Keys) > maxKeys {
		return nil, fmt.Errorf("it has no public keys, or more than %d: it must be the file that errand serves at %s, or PEM", maxKeys, KeysPath)
	}
	var list []Key
	for i, p := range f.Keys {
		block, _ := pem.Decode([]byte(p.PublicKey))
		if block == nil {
			return nil, fmt.Errorf("key %d is not PEM", i+1)
		}
		k, err := parsePublic(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		k.Retired = p.Retired
		list = append(list, k)
	}
	return list, nil
}

// parsePublic reads a key in PKIX form. Its ID is computed: nothing that a file says about it counts.
func parsePublic(der []byte) (Key, error) {
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return Key{}, errors.New("it is not a public key in PKIX form")
	}
	k, ok := public.(ed25519.PublicKey)
	if !ok {
		return Key{}, errors.New("it is not an Ed25519 key")
	}
	id, err := dsse.SHA256KeyID(k)
	return Key{ID: id, Public: k}, err
}

// mergeKeys returns the keys without repetitions. A file may be older than the retirement that another one knows, so the earliest counts.
func mergeKeys(keys []Key) (list []Key) {
	for _, k := range keys {
		i := slices.IndexFunc(list, func(l Key) bool { return l.ID == k.ID })
		switch {
		case i < 0:
			list = append(list, k)
		case list[i].Retired.IsZero() || !k.Retired.IsZero() && k.Retired.Before(list[i].Retired):
			list[i].Retired = k.Retired
		}
	}
	return list
}

// namedKey returns the key that a statement itself names.
func namedKey(d Deployment) (Key, error) {
	der, err := base64.StdEncoding.DecodeString(d.PublicKey)
	if err != nil {
		return Key{}, errors.New("the statement names no usable key")
	}
	return parsePublic(der)
}
