package boltkv_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

func fillWith(t *testing.T, db *boltkv.DB, n int, value string) {
	t.Helper()
	for i := range n {
		if err := db.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(fmt.Sprintf("%04d", i), []byte(value)) }); err != nil {
			t.Error(err)
		}
	}
}

// TestCheckWhileInUse: a check finds no problem in a file that is written meanwhile, which bbolt's own check does.
func TestCheckWhileInUse(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	fillWith(t, db, 200, strings.Repeat("x", 2000))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 3 {
			fillWith(t, db, 60, strings.Repeat("y", 1000+i*1500))
		}
	}()
	for checks := 0; ; checks++ {
		if err := db.Check(t.Context()); err != nil {
			t.Fatalf("check %d: %v", checks, err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// TestIsOpen: a file is open exactly while a store is; looking neither creates nor reads it.
func TestIsOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	check := func(want bool) {
		t.Helper()
		if open, err := boltkv.IsOpen(path); err != nil || open != want {
			t.Errorf("got %v, %v; want %v", open, err, want)
		}
	}
	check(false)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking created the file: %v", err)
	}
	for range 2 {
		db, err := boltkv.Open(path, boltkv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		check(true)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		check(false)
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(false)
}

// TestCheckFindsDamage: a truncated or overwritten file is an error, whether it is in use or not, and not the end of the process.
func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 64<<10) },
		"overwritten": func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			info, err := f.Stat()
			if err == nil {
				page := int64(os.Getpagesize())
				_, err = f.WriteAt(make([]byte, info.Size()-2*page), 2*page)
			}
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "errand.db")
			db, err := boltkv.Open(path, boltkv.Options{})
			if err != nil {
				t.Fatal(err)
			}
			fillWith(t, db, 200, strings.Repeat("x", 2000))
			if err := db.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			if err := db.Check(t.Context()); err == nil {
				t.Error("the check of the file in use finds nothing")
			}
			if err := db.Close(); err != nil {
				t.Log(err)
			}
			if err := boltkv.CheckFile(t.Context(), path); err == nil {
				t.Error("the check of the closed file finds nothing")
			}
		})
	}
}

// TestCheckEnds: a check ends with its context, with the context's error.
func TestCheckEnds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	db, err := boltkv.Open(path, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fillWith(t, db, 10, "x")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := db.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := boltkv.CheckFile(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := boltkv.CheckFile(t.Context(), path); err != nil {
		t.Error(err)
	}
}
