package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// wants checks the exit code and the output of a command.
func (c *clinic) wants(code int, text string, args ...string) {
	c.t.Helper()
	got, out, errs := callIn(c.t, c.bin, nil, append(args, "-c", c.file())...)
	if got != code || !strings.Contains(out+errs, text) {
		c.t.Errorf("errand %s: got code %d and\n%s%swant code %d and %q", strings.Join(args, " "), got, out, errs, code, text)
	}
}

// TestBackupAndRestore takes a backup of the running errand, and one of a stopped one, and restores them.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	first, second := c.path("first.tar.zst"), c.path("second.tar.zst")
	c.wants(cli.ExitFailed, "there is nothing to back up", "backup", "-o", first)
	stop := c.serve()
	c.wants(cli.ExitOK, "the store and ", "backup", "-o", first)
	if info, err := os.Stat(first); err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	c.wants(cli.ExitFailed, "exists already", "backup", "-o", first)
	c.wants(cli.ExitFailed, "would be inside the data folder", "backup", "-o", c.path("data/x.tar.zst"))
	c.wants(cli.ExitOK, "backup   sent to the operator", "audit")
	c.wants(cli.ExitFailed, "Stop it first. If systemd opens its port, stop the socket", "restore", first, "--force")
	listen := c.config["listen"]
	c.config["listen"] = "127.0.0.1:1"
	c.wants(cli.ExitFailed, "Use the configuration of the running errand", "backup", "-o", second)
	c.config["listen"] = listen
	stop()
	c.wants(cli.ExitOK, "verified", "backup", "-o", second)
	c.wants(cli.ExitFailed, "is not empty", "restore", first)
	c.wants(cli.ExitOK, "The earlier content is in ", "restore", first, "--force")
	c.config["data"], c.config["deployment"] = c.path("other"), "other"
	c.wants(cli.ExitFailed, `of the deployment "errand"`, "restore", second)
	delete(c.config, "deployment")
	c.wants(cli.ExitOK, "Restored the backup of ", "restore", second)
	c.wants(cli.ExitFailed, "complete backup", "restore", c.path("admin"))
	c.wants(cli.ExitUsage, "takes one backup", "restore")
	c.wants(cli.ExitFailed, "until `errand resume`", "reap")
	c.serve()
	c.wants(cli.ExitOK, "restore  restored from the backup of ", "audit")
	c.wants(cli.ExitOK, "errand is paused", "status")
	c.wants(cli.ExitOK, "errand: resumed", "resume")
	c.wants(cli.ExitOK, "0 open tasks", "status")
	c.write("other/restore.unfinished", "", 0o600)
	c.wants(cli.ExitFailed, "was interrupted", "reap", "--dry-run")
}

// TestBackupIsCut: after any failure no file remains, and the error gives the reason.
func TestBackupIsCut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"in the middle": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 100_000))
			panic(http.ErrAbortHandler)
		}, "receive the backup"},
		"at the beginning": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "no answer from errand"},
		"incomplete":       {func(http.ResponseWriter, *http.Request) {}, "no complete backup"},
		"another one": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "another backup is being made", http.StatusConflict)
		}, "another backup"},
		"a full disk": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no space left", http.StatusInternalServerError)
		}, "no space left"},
		"another version": {http.NotFound, "answered 404"},
		"the wrong token": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "the token is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errand := clitest.Serve(c.answer)
			t.Cleanup(errand.Close)
			k := newClinic(t, filepath.Join(t.TempDir(), "errand"))
			k.config["listen"] = strings.TrimPrefix(errand.URL, "http://")
			k.wants(cli.ExitFailed, "no such file", "backup", "-o", k.path("out/b.tar.zst"))
			if err := os.Mkdir(k.path("out"), 0o700); err != nil {
				t.Fatal(err)
			}
			k.wants(cli.ExitFailed, c.want, "backup", "-o", k.path("out/b.tar.zst"))
			if left, err := os.ReadDir(k.path("out")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
