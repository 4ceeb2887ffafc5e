package server

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
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

// TestFullDiskIsReported: while the disk of the store is full the log says so once, with a remedy, and /readyz says that errand is not
// ready; when there is room again both say that it is.
func TestFullDiskIsReported(t *testing.T) {
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
