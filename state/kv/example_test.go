package kv_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// An update writes either all of its keys or none, and notifies the watchers of their prefix.
func ExampleUpdate() {
	dir, err := os.MkdirTemp("", "kv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{Declared: []string{"task/"}})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changed := db.Notify(ctx, "task/")
	err = kv.Update(ctx, db, "add tasks", func(tx kv.Tx) error {
		for key, value := range map[string]string{"task/1": "queued", "task/2": "planning"} {
			if err := tx.Put(key, []byte(value)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	<-changed
	err = db.Scan(ctx, "task/", "", 0, func(p kv.Pair) error {
		fmt.Println(p.Key, string(p.Value))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// task/1 queued
	// task/2 planning
}
