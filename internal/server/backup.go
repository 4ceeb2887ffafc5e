package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/backup"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// backup copies the store and the files for one request. Only one copy is made at a time: each needs space for the store.
func (s *Server) backup(ctx context.Context) (admin.BackupCopy, error) {
	if !s.copying.TryLock() {
		return nil, admin.Refusal("another backup is being made, or a task is being purged; try again when that has ended")
	}
	c, err := backup.Take(ctx, backup.Source{
		Data: s.cfg.Data, Store: s.file, Hold: s.archive.HoldDeletions, Info: s.backupInfo(),
		Schema: func(ctx context.Context) (int, error) { return store.Schema(ctx, s.db) },
		Free:   backup.FreeSpace,
	})
	if err != nil {
		s.copying.Unlock()
		return nil, err
	}
	return &runningCopy{c, sync.OnceFunc(s.copying.Unlock)}, nil
}

// runningCopy is a copy that permits the next one when it is closed.
type runningCopy struct {
	*backup.Copy
	end func()
}

func (c *runningCopy) Close() error {
	defer c.end()
	return c.Copy.Close()
}

func (s *Server) backupInfo() backup.Info {
	return backup.Info{Errand: s.opts.Version, At: s.opts.Now().UTC(), Deployment: s.cfg.Deployment, App: s.cfg.GitHub.AppID}
}

// backupSchedule returns the backups that the operator has configured, nil if there are none. Only a server makes them.
func backupSchedule(cfg config.Config, opts Options) *backup.Schedule {
	if cfg.Backup.Folder == "" {
		return nil
	}
	s := &Server{cfg: cfg, opts: opts}
	return &backup.Schedule{
		Folder: cfg.Backup.Folder, Data: cfg.Data, Every: cfg.Backup.Every, Keep: cfg.Backup.Keep, Info: s.backupInfo, Now: opts.Now, Log: opts.Log,
	}
}

// makeBackups refuses a folder for backups that can never be used. One that cannot be used at present, because its disk is missing for
// example, is no reason to stop everything else: backups are tried again.
func (s *Server) makeBackups(context.Context) error {
	if s.backups = backupSchedule(s.cfg, s.opts); s.backups == nil {
		return nil
	}
	s.backups.Made, s.backups.Make = s.metrics.Backup(), func(ctx context.Context, w io.Writer) error {
		c, err := s.backup(ctx)
		if err != nil {
			return err
		}
		return errors.Join(c.WriteTo(ctx, w), c.Close())
	}
	err := s.backups.Check(os.Geteuid())
	if errors.Is(err, backup.ErrInside) {
		return fmt.Errorf("backup.folder: %w", err)
	}
	if err != nil {
		s.opts.Log.Error().Err(err).Msg("backups cannot be made into backup.folder")
	}
	return nil
}

// makeScheduledBackups makes backups until ctx ends.
func (s *Server) makeScheduledBackups(ctx context.Context) error {
	if s.backups == nil {
		return nil
	}
	return s.backups.Run(ctx)
}

// backupCheck checks the backups that the operator has configured. Only a running errand makes them.
func backupCheck(b *backup.Schedule, running bool) doctor.Check {
	return func(context.Context) []doctor.Finding {
		if b == nil {
			return nil
		}
		const lost = "If the data folder is lost, so is what happened since the newest backup."
		f := doctor.Finding{Check: "backup", Status: doctor.OK}
		user := os.Geteuid()
		if !running {
			user = b.Owner()
		}
		if err := b.Check(user); err != nil {
			f.Status, f.Found, f.Meaning, f.Fix = doctor.Failed, fmt.Sprintf("Backups cannot be made: %v.", err), lost, "Correct the folder as the line above says; errand tries again within a quarter of an hour."
			return []doctor.Finding{f}
		}
		fix := "Start errand, which makes them: `systemctl start errand`."
		if running {
			fix = fmt.Sprintf("Make one now: `cd %s && errand backup`. If that fails, it says why; so does errand's log: `journalctl -u errand | grep backup`.", remote.Quote(b.Folder))
		}
		at, err := b.Newest()
		age, every := b.Now().Sub(at), words.Span(b.Every)
		made := at.UTC().Format("2006-01-02 15:04 UTC")
		switch {
		case err != nil:
			f.Status, f.Found = doctor.Skipped, fmt.Sprintf("The backups cannot be listed: %v.", err)
		case b.FailedSince(at):
			f.Status, f.Found, f.Meaning, f.Fix = doctor.Warning, fmt.Sprintf("The last backup failed: %v.", b.Failure()), lost, "Correct what it says; errand tries again every quarter of an hour. "+fix
		case at.IsZero():
			f.Status, f.Found, f.Meaning, f.Fix = doctor.Warning, fmt.Sprintf("There is no backup in %s yet; one is made every %s.", b.Folder, every), lost, fix
		case age > 2*b.Every:
			f.Status, f.Found, f.Meaning, f.Fix = doctor.Warning, fmt.Sprintf("The newest backup in %s is %s old (%s); one is made every %s.", b.Folder, words.Span(age), made, every), lost, fix
		default:
			f.Found = fmt.Sprintf("The newest backup in %s is %s old (%s); one is made every %s.", b.Folder, words.Span(age), made, every)
		}
		return []doctor.Finding{f}
	}
}

// BackupStopped writes a backup while no errand runs. The error is ErrServing if one has the store open, and fs.ErrNotExist if there is
// no store.
func BackupStopped(ctx context.Context, cfg config.Config, opts Options, w io.Writer) (err error) {
	s := &Server{cfg: cfg, opts: opts.withDefaults()}
	if err := backup.Unfinished(cfg.Data); err != nil {
		return err
	}
	file := filepath.Join(cfg.Data, "errand.db")
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("there is nothing to back up: %w", err)
	}
	db, err := boltkv.Open(file, boltkv.Options{})
	if errors.Is(err, boltkv.ErrLocked) {
		return fmt.Errorf("%w: %w", ErrServing, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := backup.Clean(cfg.Data); err != nil {
		return err
	}
	c, err := backup.Take(ctx, backup.Source{
		Data: cfg.Data, Store: db, Info: s.backupInfo(),
		Schema: func(ctx context.Context) (int, error) { return store.Schema(ctx, db) },
	}) // the last space may be used: no errand needs it
	if err != nil {
		return err
	}
	return errors.Join(c.WriteTo(ctx, w), c.Close())
}

// Restore replaces the data folder by a backup. The error is ErrServing while errand runs.
func Restore(ctx context.Context, cfg config.Config, opts Options, from io.ReadSeeker, force bool) (backup.Restored, error) {
	opts = opts.withDefaults()
	if err := mayOwn(cfg.Data); err != nil {
		return backup.Restored{}, err
	}
	done, err := backup.Restore(ctx, from, backup.Restoring{
		Data: cfg.Data, App: cfg.GitHub.AppID, Deployment: cfg.Deployment, Force: force, Now: opts.Now,
		Prepare: func(ctx context.Context, file string, info backup.Info) error {
			return prepareRestored(ctx, file, info, opts.Now)
		},
	})
	if errors.Is(err, boltkv.ErrLocked) {
		err = fmt.Errorf("%w: %w", ErrServing, err)
	}
	return done, err
}

// mayOwn returns an error if this is root and the data folder belongs to another user: errand could not read what root restores.
func mayOwn(data string) error {
	info, err := os.Stat(data)
	if errors.Is(err, fs.ErrNotExist) || os.Geteuid() != 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the data folder: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
		return fmt.Errorf("%s belongs to user %d, who could not read what root restores; run this as that user: `sudo -u '#%d' errand restore …`", data, st.Uid, st.Uid)
	}
	return nil
}

// prepareRestored migrates an unpacked store and marks it as restored, so that errand does nothing until the operator resumes it.
func prepareRestored(ctx context.Context, file string, info backup.Info, now func() time.Time) (err error) {
	db, err := boltkv.Open(file, boltkv.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	st, err := store.Open(ctx, db, store.Options{Now: now})
	if err != nil {
		return err
	}
	return st.MarkRestored(ctx, info.At, store.Action{ID: rand.Text(), By: "errand restore", Command: "restore"})
}
