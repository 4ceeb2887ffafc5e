package keyfile

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSigningKeyIsCreatedAndRotated: the public key of every predecessor stays, with its times.
func TestSigningKeyIsCreatedAndRotated(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "provenance_key")
	begin := time.Date(2026, 3, 2, 9, 0, 0, 123, time.UTC)
	first, err := ReadSigning(path, begin)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	again, err := ReadSigning(path, begin.Add(time.Hour))
	if err != nil || !again.Private.Equal(first.Private) || !again.Created.Equal(begin.Truncate(time.Second)) {
		t.Fatalf("read again: got a key of %v, %v", again.Created, err)
	}
	var keys []ed25519.PrivateKey
	for n := range 3 {
		k, err := RotateSigning(path, begin.Add(time.Duration(n+1)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.Private)
	}
	last, err := ReadSigning(path, begin)
	if err != nil || !last.Private.Equal(keys[2]) || len(last.Retired) != 3 {
		t.Fatalf("after three rotations: %d retired keys, %v", len(last.Retired), err)
	}
	oldest := last.Retired[2]
	if public, _ := first.Private.Public().(ed25519.PublicKey); !bytes.Equal(oldest.Public, public) || !oldest.Retired.Equal(begin.Add(time.Hour).Truncate(time.Second)) || !oldest.Created.Equal(begin.Truncate(time.Second)) {
		t.Errorf("got the oldest key %+v", oldest)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Count(data, []byte("PRIVATE KEY-----")) != 2 {
		t.Errorf("the file has other private keys than the present one: %v\n%s", err, data)
	}
}

// TestOneRotationAtATime: of two rotations at once, one is refused, because the other's key would be lost.
func TestOneRotationAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "provenance_key")
	if _, err := ReadSigning(path, time.Now()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = RotateSigning(path, time.Now())
	if after, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "another process") || !bytes.Equal(before, after) {
		t.Errorf("got %v, and a file of %d bytes after %d", err, len(after), len(before))
	}
	unlock()
	if k, err := RotateSigning(path, time.Now()); err != nil || len(k.Retired) != 1 {
		t.Errorf("afterwards: got %d retired keys, %v", len(k.Retired), err)
	}
}

// TestBrokenSigningKeyIsNotReplaced: a damaged file is an error, because a new key would hide the loss of the old ones.
func TestBrokenSigningKeyIsNotReplaced(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good")
	if _, err := RotateSigning(good, time.Now()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	public := string(data[bytes.Index(data, []byte("-----BEGIN PUBLIC KEY")):])
	for name, content := range map[string]string{
		"empty": "", "words": "a key", "only retired keys": public, "cut": string(data[:40]), "no times": strings.ReplaceAll(string(data), "Created:", "Made:"),
		"two private keys": string(data[:len(data)-len(public)]) + string(data), "broken inside": strings.Replace(string(data), "MC4", "MD4", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, readErr := ReadSigning(path, time.Now())
			_, rotateErr := RotateSigning(path, time.Now())
			if after, _ := os.ReadFile(path); readErr == nil || rotateErr == nil || string(after) != content {
				t.Errorf("got errors %v, %v, and a file of %d bytes", readErr, rotateErr, len(after))
			}
		})
	}
}
