package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// Purged is the result of purging a task.
type Purged struct {
	Task  string    `json:"task"` // OWNER/REPO#N
	At    time.Time `json:"at"`
	Again bool      `json:"again,omitempty"` // it had been purged before
	// Files and Webhooks are the numbers of deleted files and of deleted webhooks that could not be applied; Unposted is that of comments
	// and other jobs that were dropped.
	Files    int `json:"files"`
	Webhooks int `json:"webhooks"`
	Unposted int `json:"unposted"`
	// StoreBefore and StoreAfter are the sizes of the store's file in bytes.
	StoreBefore int64 `json:"store_before"`
	StoreAfter  int64 `json:"store_after"`
	// Backups is the number of backups in the audit log that may contain the texts, and LastBackup is when the newest was made.
	Backups    int       `json:"backups"`
	LastBackup time.Time `json:"last_backup,omitzero"`
	// Copies are other folders that may contain the texts, such as those that a restoration put aside.
	Copies []string `json:"copies,omitempty"`
}

// An OpenPurge is a purge that has not been completed: files of the task may be left, or texts in free pages of the database.
type OpenPurge struct {
	Task state.TaskKey
	// FilesDeleted is set if no files of the task are left. Those that exist by now are of a later life.
	FilesDeleted bool
	// Branch is the branch of the purged life, by which failed webhooks about it are found, unless FilesDeleted is set.
	Branch string
}

const (
	// filesDeleted is the mark of a purge of which only the database is left.
	filesDeleted = "files-deleted"
	// ofBranch begins the mark of a purge with the name of the task's branch.
	ofBranch = "branch:"
)

// markPurge stores that a task is being purged. The name of its branch stays in the mark until its files are deleted, also if the purge is
// repeated.
func markPurge(tx kv.Tx, t *state.Task) error {
	key, mark := prePurging+t.Key.String(), []byte(nil)
	if t.Branch.Name != "" {
		mark = []byte(ofBranch + t.Branch.Name)
	} else if old, err := tx.Get(key); err == nil && strings.HasPrefix(string(old), ofBranch) {
		mark = old
	} else if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	return tx.Put(key, mark)
}

// Purging returns the purges that have not been completed.
func (s *Store) Purging(ctx context.Context) ([]OpenPurge, error) {
	var list []OpenPurge
	err := s.db.Scan(ctx, prePurging, "", 0, func(p kv.Pair) error {
		key, err := state.ParseTaskKey(strings.TrimPrefix(p.Key, prePurging))
		branch, _ := strings.CutPrefix(string(p.Value), ofBranch)
		if branch == string(p.Value) {
			branch = ""
		}
		list = append(list, OpenPurge{key, string(p.Value) == filesDeleted, branch})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the purged tasks: %w", err)
	}
	return list, nil
}

// StorePurgedFiles records that a purged task has no files left.
func (s *Store) StorePurgedFiles(ctx context.Context, key state.TaskKey) error {
	err := kv.Update(ctx, s.db, "purged files", func(tx kv.Tx) error { return tx.Put(prePurging+key.String(), []byte(filesDeleted)) })
	if err != nil {
		return fmt.Errorf("store that the files of task %s are deleted: %w", key, err)
	}
	return nil
}

// EndPurge records that nothing is left of a purged task's texts.
func (s *Store) EndPurge(ctx context.Context, key state.TaskKey) error {
	err := kv.Update(ctx, s.db, "end purge", func(tx kv.Tx) error { return tx.Delete(prePurging + key.String()) })
	if err != nil {
		return fmt.Errorf("store that task %s is purged: %w", key, err)
	}
	return nil
}

// EachDelivery calls fn with every delivery that is still to be applied, or with every one that was set aside because it failed too often,
// with its payload. fn may call the store.
func (s *Store) EachDelivery(ctx context.Context, aside bool, fn func(d Delivery) error) error {
	prefix := preInbox
	if aside {
		prefix = prePoison
	}
	err := s.db.Scan(ctx, prefix, "", 0, func(p kv.Pair) error {
		var d Delivery
		err := s.db.View(ctx, func(r kv.Reader) error {
			packed, err := r.Get(p.Key)
			if err == nil {
				d, err = s.readDelivery(r, guidOfTimeKey(p.Key), packed, true)
			}
			return err
		})
		if errors.Is(err, kv.ErrNotFound) {
			return nil // it was applied meanwhile
		}
		if err != nil {
			return err
		}
		return fn(d)
	})
	if err != nil {
		return fmt.Errorf("read the deliveries: %w", err)
	}
	return nil
}
