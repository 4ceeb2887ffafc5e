package upgrade_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/errand-bot/errand/state/kv/boltkv"
)

// folder is the directory with the database of 403b8aa.
var folder = filepath.Join("testdata", "403b8aa")

// expand returns the content of a compressed file of 403b8aa.
func expand(t *testing.T, name string) []byte {
	t.Helper()
	return expandFile(t, filepath.Join(folder, name))
}

// expandFile returns the content of a compressed file.
func expandFile(t *testing.T, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	data, err := dec.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decode(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

// restore writes the old database to a new directory, byte for byte as 403b8aa wrote it, and returns its path. One
// delivery in it is random and incompressible, so the stored file has holes in its place.
func restore(t *testing.T) string {
	t.Helper()
	whole := expand(t, "errand.db.zst")
	list, err := os.ReadFile(filepath.Join(folder, "holes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cut struct {
		SHA256 string `json:"sha256"`
		Holes  []struct{ At, From, Bytes int }
	}
	decode(t, list, &cut)
	noise := make([]byte, 1400<<10)
	if _, err := rand.NewChaCha8([32]byte([]byte("errand's database of 403b8aa: ok"))).Read(noise); err != nil {
		t.Fatal(err)
	}
	for _, h := range cut.Holes {
		copy(whole[h.At:h.At+h.Bytes], noise[h.From:])
	}
	if sum := sha256.Sum256(whole); hex.EncodeToString(sum[:]) != cut.SHA256 {
		t.Fatal("the restored database differs from the original")
	}
	path := filepath.Join(t.TempDir(), "errand.db")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens the restored database of 403b8aa.
func open(t *testing.T) *boltkv.DB {
	t.Helper()
	return openFile(t, restore(t))
}

func openFile(t *testing.T, path string) *boltkv.DB {
	t.Helper()
	db, err := boltkv.Open(path, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
