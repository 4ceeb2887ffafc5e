package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/backup"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/server"
)

// backupCmd does what `errand backup -o FILE` does: backup FILE.
func backupCmd(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	status, body, err := s.post("/backup", nil)
	ts.Check(err)
	if status != http.StatusOK {
		ts.Fatalf("backup: %d %.200s", status, body)
	}
	_, err = backup.Save(context.Background(), ts.MkAbs(args[0]), func(_ context.Context, w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader([]byte(body)))
		return err
	})
	ts.Check(err)
}

// restoreCmd does what `errand restore --force FILE` does, while errand is stopped: restore FILE.
func restoreCmd(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	cfg, err := config.Load(s.w.ConfigFile(), os.LookupEnv)
	ts.Check(err)
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	_, err = server.Restore(context.Background(), cfg, server.Options{}, f, true)
	ts.Check(err)
}

// writesCmd checks that errand has changed nothing on GitHub since the mark: writes mark, writes none.
func writesCmd(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	calls, _ := s.w.GitHub.Calls()
	now := map[string]int{}
	for _, c := range calls {
		if !strings.HasPrefix(c.Route, "GET ") && !strings.Contains(c.Route, "access_tokens") && c.Route != "git upload-pack" {
			now[c.Route] = c.Count
		}
	}
	if args[0] == "mark" {
		s.writes = now
		return
	}
	for route, n := range now {
		if n != s.writes[route] {
			ts.Fatalf("%s: %d calls since the mark", route, n-s.writes[route])
		}
	}
}
