package server

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/state/store"
)

// ready asks whether errand is ready.
func ready(s *Server) int {
	w := httptest.NewRecorder()
	s.readyz(w, httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody))
	return w.Code
}

// TestFullDiskIsTold: while the disk of the store is full the log says so once, with a remedy, and /readyz says that errand is not
// ready; when there is room again both say that it is.
func TestFullDiskIsTold(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 4<<20, func(t *testing.T, dir string) {
		var log bytes.Buffer
		s := &Server{cfg: config.Config{Data: dir}, opts: Options{Log: zerolog.New(&log)}.withDefaults()}
		if err := s.openStore(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.db.Close(); err != nil {
				t.Error(err)
			}
		}()
		s.ready.Store(true)
		large := make([]byte, 100<<10)
		if _, err := rand.Read(large); err != nil { // what does not compress
			t.Fatal(err)
		}
		free := disktest.Fill(t, dir, 0)
		for range 2 {
			if _, err := s.store.PutDelivery(t.Context(), store.Delivery{GUID: "g", Event: "issues", Payload: large}); err == nil {
				t.Error("stored on a full disk")
			}
			if code := ready(s); code != http.StatusServiceUnavailable {
				t.Errorf("ready with a full disk: %d", code)
			}
		}
		if text := log.String(); strings.Count(text, "the disk is full") != 1 || !strings.Contains(text, "remedy") || !strings.Contains(text, dir) {
			t.Errorf("the log says %q", text)
		}
		free()
		if _, err := s.store.PutDelivery(t.Context(), store.Delivery{GUID: "g", Event: "issues", Payload: []byte("{}")}); err != nil {
			t.Error(err)
		}
		if code := ready(s); code != http.StatusOK || strings.Count(log.String(), "can be written again") != 1 {
			t.Errorf("with room again: %d, %q", code, log.String())
		}
	})
}

// TestKeysWithoutPower: a key that is in use is the same after a power cut, and half a key is never left.
func TestKeysWithoutPower(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			signer, err := clientKey(filepath.Join(dir, "client_key"))
			if err != nil {
				t.Fatal(err)
			}
			disktest.Say(hex.EncodeToString(signer.PublicKey().Marshal()))
			secret, err := secretFile(filepath.Join(dir, "tether_key"))
			if err != nil {
				t.Fatal(err)
			}
			disktest.Say(hex.EncodeToString(secret))
		},
		Check: func(t *testing.T, dir string, said []string) {
			for i, name := range []string{"client_key", "tether_key"} {
				_, err := os.Stat(filepath.Join(dir, name))
				if os.IsNotExist(err) && len(said) <= i {
					continue
				}
				var got string
				if i == 0 {
					signer, serr := clientKey(filepath.Join(dir, name))
					if serr == nil {
						got = string(signer.PublicKey().Marshal())
					}
					err = serr
				} else {
					secret, serr := os.ReadFile(filepath.Join(dir, name))
					got, err = string(secret), serr
				}
				if err != nil || len(said) > i && hex.EncodeToString([]byte(got)) != said[i] || len(got) < 32 {
					t.Errorf("%s is another one: %v", name, err)
				}
			}
		},
	})
}

// TestKeysOnAFullDisk: a key that cannot be stored is no key, and nothing is in the way when there is room.
func TestKeysOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, kind := range []disktest.Kind{disktest.Write, disktest.Sync, disktest.Close, disktest.Rename} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					_, err := clientKey(filepath.Join(dir, "client_key"))
					_, other := secretFile(filepath.Join(dir, "tether_key"))
					disktest.Say("mended")
					if err == nil || other == nil {
						t.Errorf("got %v, %v", err, other)
					}
					if left, err := os.ReadDir(dir); err != nil || kind != disktest.Sync && len(left) > 0 {
						t.Errorf("left behind: %v, %v", left, err)
					}
					if _, err := clientKey(filepath.Join(dir, "client_key")); err != nil {
						t.Error(err)
					}
				},
				Fail: func(c disktest.Call, said []string) syscall.Errno {
					if len(said) == 0 && c.Kind == kind {
						return syscall.ENOSPC
					}
					return 0
				},
			})
		})
	}
}
