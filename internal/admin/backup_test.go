package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state/store"
)

// backupCopy is a copy with a few bytes; broken fails after them.
type backupCopy struct {
	broken error
	open   *sync.WaitGroup
}

func (c backupCopy) WriteTo(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, "an archive")
	return errors.Join(err, c.broken)
}

func (c backupCopy) Close() error {
	c.open.Done()
	return nil
}

// brokenAudit stores nothing.
type brokenAudit struct{ admin.Audit }

func (brokenAudit) Add(context.Context, store.Action) error { return errors.New("no audit log") }

// TestBackup: only operators get a backup, it is in the audit log before it is sent, and nobody takes a part for all of it.
func TestBackup(t *testing.T) {
	t.Parallel()
	bearer := map[string]string{"Authorization": "Bearer " + token}
	for name, c := range map[string]struct {
		header  map[string]string
		refused error // by Backup
		broken  error // the copy
		noAudit bool
		status  int // 0: the connection is cut
		body    string
		audit   string
	}{
		"a backup":         {header: bearer, status: http.StatusOK, body: "an archive", audit: "sent to the operator"},
		"another":          {header: bearer, refused: admin.Refusal("another backup is being made"), status: http.StatusConflict, body: "another backup", audit: "another backup is being made"},
		"a full disk":      {header: bearer, refused: errors.New("no space left"), status: http.StatusInternalServerError, body: "no space left", audit: "failed: no space left"},
		"broken":           {header: bearer, broken: errors.New("broken"), audit: "sent to the operator"},
		"no audit log":     {header: bearer, noAudit: true, status: http.StatusInternalServerError, body: "no audit log"},
		"a stranger":       {status: http.StatusUnauthorized},
		"a stranger's key": {header: map[string]string{"Authorization": "Bearer x"}, status: http.StatusUnauthorized},
		"another site":     {header: map[string]string{"Authorization": "Bearer " + token, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, status: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var open sync.WaitGroup // copies
			w := newWorld(t, func(cfg *admin.Config) {
				cfg.Audit = cfg.Store.(*store.Store).Audit
				if c.noAudit {
					cfg.Audit = brokenAudit{cfg.Audit}
				}
				cfg.Backup = func(context.Context) (admin.BackupCopy, error) {
					if c.refused != nil {
						return nil, c.refused
					}
					open.Add(1)
					return backupCopy{c.broken, &open}, nil
				}
			})
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/backup", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			var body []byte
			resp, err := webtest.Client().Do(r)
			if err == nil {
				body, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			switch {
			case c.status == 0 && err == nil:
				t.Errorf("got %d %q as if it were complete", resp.StatusCode, body)
			case c.status != 0 && (err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.body)):
				t.Errorf("got %v, %q, %v", resp, body, err)
			}
			list, err := w.store.Audit.List(t.Context(), 10, func(store.Action) bool { return true })
			if err != nil || c.audit == "" && len(list) > 0 || c.audit != "" && (len(list) != 1 || list[0].Command != "backup" || list[0].Result != c.audit) {
				t.Errorf("got audit log %+v, %v", list, err)
			}
			open.Wait() // each copy is closed
		})
	}
}
