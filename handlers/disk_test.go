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

// openIn opens the store in a folder.
func openIn(t *testing.T, dir string) *store.Store {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	st, err := store.Open(t.Context(), db, store.Options{})
	check(t, err)
	return st
}

// deliver sends a webhook and returns the answer's status.
func deliver(t *testing.T, st *store.Store, guid string) int {
	t.Helper()
	front, err := handlers.Front(secret, handlers.NewInbox(st, st, nil, zerolog.Nop(), time.Now))
	check(t, err)
	var noise strings.Builder // does not compress
	for i := range 4000 {
		fmt.Fprintf(&noise, "%x", (i+len(guid))*7919%65521)
	}
	w := httptest.NewRecorder()
	front.ServeHTTP(w, request([]byte(`{"action":"opened","x":"`+guid+noise.String()+`"}`), func(r *http.Request) { r.Header.Set("X-GitHub-Delivery", guid) }))
	return w.Code
}

// pending lists the GUIDs of the deliveries that are stored.
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

// TestFullDisk: without room GitHub is answered 500, never 200; when there is room again, what it sends anew is stored, without a restart.
func TestFullDisk(t *testing.T) {
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
				t.Fatalf("answered %d", code)
			}
			if stored := strings.Contains(pending(t, st), guid+" "); stored != (refused != guid) {
				t.Fatalf("%s is stored: %t", guid, stored)
			}
		}
		if refused == "" {
			t.Fatal("the disk does not get full")
		}
		free()
		if code := deliver(t, st, refused); code != http.StatusOK || !strings.Contains(pending(t, st), refused+" ") {
			t.Errorf("with room again: answered %d", code)
		}
	})
}

// TestAnsweredIsStored: on a disk that does not write now and then, a webhook that was answered 200, the first time or when GitHub sent
// it anew, is there after the power fails at any moment.
func TestAnsweredIsStored(t *testing.T) {
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
							t.Errorf("%s was answered 200 and is lost", guid)
						}
					}
				},
			})
			if syncs == 0 || row > 1 && refused == 0 {
				t.Errorf("%d syncs, %d webhooks refused: nothing failed", syncs, refused)
			}
		})
	}
}
