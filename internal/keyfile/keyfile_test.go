package keyfile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Keys are made once, for us alone, and without leaving anything else behind.
func TestKeysAreMadeOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	client, tether := filepath.Join(dir, "client_key"), filepath.Join(dir, "tether_key")
	first, err := SSH(client)
	if err != nil {
		t.Fatal(err)
	}
	again, err := SSH(client)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.PublicKey().Marshal(), again.PublicKey().Marshal()) {
		t.Error("the client key is another one after a restart")
	}
	secret, err := Secret(tether)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := Secret(tether); err != nil || !bytes.Equal(secret, same) || len(secret) != 32 {
		t.Errorf("the tether's key is another one after a restart: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	for _, path := range []string{client, tether} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}
