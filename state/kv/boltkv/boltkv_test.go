package boltkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/kv/kvtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kvtest.Run(t, kvtest.Backend{Open: func(t *testing.T, name string, check bool) kv.DB {
		t.Helper()
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_")+".db")
		return open(t, path, boltkv.Options{Declared: []string{kvtest.Declared}, CheckRepeatable: check})
	}})
}

func open(t testing.TB, path string, opts boltkv.Options) *boltkv.DB {
	t.Helper()
	db, err := boltkv.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func TestOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "errand.db")
	db := open(t, path, boltkv.Options{})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got file mode %v, error %v; want -rw-------", info.Mode(), err)
	}
	_, err = boltkv.Open(path, boltkv.Options{LockWait: time.Millisecond})
	if !errors.Is(err, boltkv.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("second open: got error %v, want ErrLocked with the path", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, boltkv.Options{LockWait: time.Millisecond})
}

func TestOpenRejectsOtherFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	rubbish := bytes.Repeat([]byte("not a database "), 4096)
	if err := os.WriteFile(path, rubbish, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := boltkv.Open(path, boltkv.Options{}); err == nil || errors.Is(err, boltkv.ErrLocked) {
		t.Errorf("open: got error %v, want one about the file", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, rubbish) {
		t.Errorf("got a changed file (error %v), want it unchanged", err)
	}
}

// grow writes n values of 10 kB and deletes nine of ten.
func grow(t *testing.T, db kv.DB, n int) {
	t.Helper()
	value := bytes.Repeat([]byte("v"), 10_000)
	for i := range n {
		key := fmt.Sprintf("key/%04d", i)
		err := db.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(key, value) })
		if i%10 != 0 && err == nil {
			err = db.Update(t.Context(), func(tx kv.Tx) error { return tx.Delete(key) })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func keys(t *testing.T, db kv.DB) string {
	t.Helper()
	var all []string
	err := db.Scan(t.Context(), "", "", 0, func(p kv.Pair) error {
		all = append(all, fmt.Sprintf("%s:%d", p.Key, len(p.Value)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "errand.db"), boltkv.Options{})
	grow(t, db, 20)
	var copied bytes.Buffer
	if err := db.Backup(t.Context(), nil, &copied); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(dir, "restored.db")
	if err := os.WriteFile(restored, copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := keys(t, open(t, restored, boltkv.Options{})), keys(t, db); got != want {
		t.Errorf("restored contents: got %s, want %s", got, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Backup(ended, nil, &copied); !errors.Is(err, context.Canceled) {
		t.Errorf("backup with an ended context: got error %v", err)
	}
}
