package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/backup"
	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/words"
)

// backupStall is how long `errand backup` waits for errand to send more. At first errand copies its store.
const backupStall = 5 * time.Minute

// backupCommand copies the store and the files of the data folder.
func backupCommand(w cli.World) *cobra.Command {
	var path, file string
	c := &cobra.Command{
		Use:   "backup",
		Short: "Copy the store and the files of the data folder into one archive, also while errand works",
		Long: "Copy the store and the files of the data folder, as they are at one moment, into one archive that `errand restore` puts back. If errand\n" +
			"is running, it makes the copy while it works, and records that in its audit log; the command reaches it at admin.listen or listen.\n" +
			"Otherwise the command reads the data folder itself.\n\n" +
			"The archive contains keys of errand and text from private repositories: only its owner can read the file. Encrypt it before you\n" +
			"store it elsewhere. Sandboxes and copies of repositories are left out.",
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			if file == "" {
				file = backup.Info{Deployment: cfg.Deployment, App: cfg.GitHub.AppID, At: time.Now()}.FileName()
			}
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			return makeBackup(ctx, w, cfg, file)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().StringVarP(&file, "output", "o", "", "the archive's file, which must not exist; default: errand-DEPLOYMENT-APP-TIME.tar.zst in this folder")
	return c
}

func makeBackup(ctx context.Context, w cli.World, cfg config.Config, file string) error {
	if inside, err := backup.IsInside(cfg.Data, filepath.Dir(file)); err == nil && inside { // otherwise the archive's creation says why
		return fmt.Errorf("%s would be inside the data folder, and the next backup would contain it: name another folder with -o", file)
	}
	got, err := backup.Save(ctx, file, func(ctx context.Context, to io.Writer) error {
		err := receiveBackup(ctx, cfg, to)
		if !errors.Is(err, selfclient.ErrNotRunning) {
			return err
		}
		stopped := server.BackupStopped(ctx, cfg, server.Options{Version: builtFrom().version}, to)
		if errors.Is(stopped, server.ErrServing) {
			return fmt.Errorf("%w, but %w\nUse the configuration of the running errand with -c", stopped, err)
		}
		return stopped
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.Out, "%s: %s, verified. It contains secrets of errand: keep it as safe as the data folder.\n", file, describeBackup(got))
	return err
}

// describeBackup describes the size of a backup.
func describeBackup(c backup.Contents) string {
	return fmt.Sprintf("the store and %s, %s uncompressed", words.Many(c.Files-1, "file"), words.Bytes(c.Bytes))
}

// receiveBackup writes the archive that the running errand makes. The caller verifies that it is complete.
func receiveBackup(ctx context.Context, cfg config.Config, to io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(backupStall, func() { cancel(fmt.Errorf("errand has sent nothing for %s", words.Span(backupStall))) })
	defer stalled.Stop()
	resp, a, err := selfclient.Begin(ctx, cfg, http.MethodPost, "/backup", url.Values{"id": {rand.Text()}})
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer func() { _ = resp.Body.Close() }()
	if a.Status != http.StatusOK {
		if a.Body, err = io.ReadAll(io.LimitReader(resp.Body, selfclient.MaxAnswer)); err != nil {
			return selfclient.Unanswered(http.MethodGet, a.Address, err)
		}
		if (a.Status == http.StatusConflict || a.Status == http.StatusInternalServerError) && a.CheckText() == nil {
			return errors.New(logview.OneLine(a.Text()))
		}
		return a.Unexpected()
	}
	_, err = io.Copy(to, movingReader{resp.Body, stalled})
	var written *os.PathError
	if err != nil && !errors.As(err, &written) { // errand cuts the connection if the backup fails; its log says why
		err = errors.Join(fmt.Errorf("receive the backup: %w; errand's log says more", err), context.Cause(ctx))
	}
	return err
}

// movingReader postpones a timer whenever something is read.
type movingReader struct {
	from io.Reader
	t    *time.Timer
}

func (r movingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.t.Reset(backupStall)
	return n, err
}

// restoreCommand puts a backup back.
func restoreCommand(w cli.World) *cobra.Command {
	var path string
	var force bool
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the data folder by a backup of `errand backup`, while errand is stopped",
		Long: "Replace the data folder by a backup of `errand backup`. errand has to be stopped. The whole archive is verified before anything is\n" +
			"changed. The data folder has to be empty or missing: with --force its content is moved into a folder before-restore-TIME below it,\n" +
			"and a backup of another GitHub App or deployment is accepted. Run this as the user that runs errand.\n\n" +
			"A restored errand knows nothing about what happened since the backup. So it only receives webhooks at first, and does nothing else\n" +
			"until `errand resume`.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("restore takes one backup, as the path of its file, but got %q", args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := config.Load(path, w.Lookup)
			if err != nil {
				return err
			}
			ctx, stop := cli.UntilSignal(c.Context())
			defer stop()
			return restore(ctx, w, cfg, args[0], force)
		},
	}
	cli.ConfigFlag(c, &path)
	c.Flags().BoolVar(&force, "force", false, "also if the data folder is not empty, or the backup is of another App or deployment")
	return c
}

// alsoTheSocket follows advice to stop errand.
const alsoTheSocket = ". If systemd opens its port, stop the socket, too, since the next webhook would start errand again: `systemctl stop errand.socket errand.service`"

func restore(ctx context.Context, w cli.World, cfg config.Config, file string, force bool) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	done, err := server.Restore(ctx, cfg, server.Options{Version: builtFrom().version}, f, force)
	var refused *backup.RefusedError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s is not restored, because\n- %s\nWith --force it is restored nevertheless", file, strings.Join(refused.Reasons, "\n- "))
	case errors.Is(err, server.ErrServing):
		return fmt.Errorf("%w\nStop it first%s", err, alsoTheSocket)
	case err != nil:
		return err
	}
	var s strings.Builder
	fmt.Fprintf(&s, "Restored the backup of %s into %s: %s.\n", done.Info.At.UTC().Format("2006-01-02 15:04:05 UTC"), cfg.Data, describeBackup(done.Contents))
	if done.Before != "" {
		fmt.Fprintf(&s, "The earlier content is in %s. Delete it when you no longer need it.\n", done.Before)
	}
	s.WriteString("When errand starts, it only receives webhooks: it posts, publishes, creates and deletes nothing until `errand resume`. Before that,\n" +
		"`errand doctor` compares it with GitHub and the VM provider.\n" +
		"If the provenance key was replaced since the backup, the replaced one signs again: run `errand rotate provenance-key` before `errand resume`.\n")
	_, err = io.WriteString(w.Out, s.String())
	return err
}
