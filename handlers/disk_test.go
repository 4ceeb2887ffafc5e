package handlers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// openIn opens the store in a directory.
func openIn(t *testing.T, dir string) *store.Store {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	st, err := store.Open(t.Context(), db, store.Options{})
	check(t, err)
	return st
}

// deliver sends a webhook and returns the status of the answer.
func deliver(t *testing.T, st *store.Store, guid string) int {
	t.Helper()
	front, err := handlers.Front([]string{secret}, handlers.NewInbox(st, st, nil, zerolog.Nop(), time.Now))
	check(t, err)
	var noise strings.Builder // does not compress
	for i := range 4000 {
		fmt.Fprintf(&noise, "%x", (i+len(guid))*7919%65521)
	}
	w := httptest.NewRecorder()
	front.ServeHTTP(w, request([]byte(`{"action":"opened","x":"`+guid+noise.String()+`"}`), func(r *http.Request) { r.Header.Set("X-GitHub-Delivery", guid) }))
	return w.Code
}

// pending lists the GUIDs of the stored deliveries.
func pending(t *testing.T, st *store.Store) string {
	t.Helper()
	list, err := st.PendingDeliveries(t.Context(), 1000)
	check(t, err)
	var guids []string
	for _, d := range list {
		guids = append(guids, d.GUID)
	}
	return strings.Join(guids, " ") + " "
}

// While the disk is full GitHub is answered 500, never 200. Redelivered webhooks are stored as soon as there is room,
// without a restart.
func TestFullDiskIsAnsweredWith500(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 4<<20, func(t *testing.T, dir string) {
		st := openIn(t, dir)
		free := disktest.Fill(t, dir, 100<<10)
		refused := ""
		for i := range 40 {
			guid := fmt.Sprintf("guid-%02d", i)
			switch code := deliver(t, st, guid); code {
			case http.StatusOK:
			case http.StatusInternalServerError:
				refused = guid
			default:
				t.Fatalf("got status %d, want 200 or 500", code)
			}
			if stored := strings.Contains(pending(t, st), guid+" "); stored != (refused != guid) {
				t.Fatalf("%s: got stored %t, want it stored exactly if it was answered 200", guid, stored)
			}
		}
		if refused == "" {
			t.Fatal("got no full disk, want writes to fail")
		}
		free()
		if code := deliver(t, st, refused); code != http.StatusOK || !strings.Contains(pending(t, st), refused+" ") {
			t.Errorf("with room again: got status %d, want 200", code)
		}
	})
}

// A webhook that was answered 200, on its first or a later delivery, survives a power failure at any moment on a disk
// whose writes sometimes fail.
func TestAnsweredWebhookSurvivesPowerFailure(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]int{"one sync fails": 1, "two syncs in a row": 2, "three in a row": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			syncs, refused := 0, 0
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					st := openIn(t, dir)
					disktest.Say("open")
					for i := range 6 {
						guid := fmt.Sprintf("guid-%02d", i)
						for deliver(t, st, guid) != http.StatusOK {
							disktest.Say("refused")
						}
						disktest.Say(guid)
					}
				},
				Fail: func(c disktest.Call, said []string) syscall.Errno {
					if c.Kind != disktest.Sync || len(said) < 2 {
						return 0
					}
					if syncs++; syncs%5 < row {
						return syscall.EIO
					}
					return 0
				},
				Check: func(t *testing.T, dir string, said []string) {
					if len(said) < 2 {
						return
					}
					refused = strings.Count(strings.Join(said, " "), "refused")
					stored := pending(t, openIn(t, dir))
					for _, guid := range said {
						if strings.HasPrefix(guid, "guid") && !strings.Contains(stored, guid+" ") {
							t.Errorf("%s: got no stored delivery, want one, because it was answered 200", guid)
						}
					}
				},
			})
			if syncs == 0 || row > 1 && refused == 0 {
				t.Errorf("got %d syncs and %d rejected webhooks, want some failures", syncs, refused)
			}
		})
	}
}
