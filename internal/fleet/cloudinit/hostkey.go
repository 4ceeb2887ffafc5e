package cloudinit

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// minSecret is the minimum length of a deployment's secret in bytes.
const minSecret = 16

// DeriveHostKey derives the host key of a VM's first contact from the deployment's secret and the VM's name: the
// private key in OpenSSH's PEM form, and the public one as a line of authorized_keys. It is deterministic and must
// never change; another name or secret gives another key.
func DeriveHostKey(secret []byte, name string) (private []byte, public string, err error) {
	if len(secret) < minSecret || name == "" {
		return nil, "", errors.New("derive host key: needs a name and a secret of 16 bytes or more")
	}
	material, err := hkdf.Key(sha256.New, secret, []byte("errand bootstrap host key v1"), name, ed25519.SeedSize+4)
	if err != nil {
		return nil, "", fmt.Errorf("derive host key: %w", err)
	}
	key := ed25519.NewKeyFromSeed(material[:ed25519.SeedSize])
	pub, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, "", fmt.Errorf("derive host key: %w", err)
	}
	return marshal(key, pub, [4]byte(material[ed25519.SeedSize:])), authorized(pub), nil
}

// marshal encodes a key in the format that every sshd reads. The ssh package's function inserts random bytes, but this
// result must be reproducible.
func marshal(key ed25519.PrivateKey, pub ssh.PublicKey, check [4]byte) []byte {
	half := []byte(key.Public().(ed25519.PublicKey)) //nolint:forcetypeassert // by definition
	inner := append(append([]byte{}, check[:]...), check[:]...)
	inner = append(inner, ssh.Marshal(struct {
		Type    string
		Pub     []byte
		Priv    []byte
		Comment string
	}{ssh.KeyAlgoED25519, half, key, ""})...)
	for i := byte(1); len(inner)%8 != 0; i++ {
		inner = append(inner, i)
	}
	outer := ssh.Marshal(struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Pub, Inner           []byte
	}{"none", "none", "", 1, pub.Marshal(), inner})
	return pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: append([]byte("openssh-key-v1\x00"), outer...)})
}
