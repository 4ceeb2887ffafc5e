package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/provenance"
)

// TestPublicKeysNeedNoToken: errand creates its provenance key at the first start, for its user alone, and everybody may read the public one.
func TestPublicKeysNeedNoToken(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run(p.config("127.0.0.1:0", ""))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+provenance.KeysPath, nil)
	check(t, err)
	status, body := p.send(req)
	list, err := provenance.ParseKeys([]byte(body))
	if status != http.StatusOK || err != nil || len(list) != 1 || strings.Contains(body, "PRIVATE") {
		t.Errorf("got status %d, %d keys, %v: %s", status, len(list), err, body)
	}
	if info, err := os.Stat(filepath.Join(p.dir, "data", "provenance_key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
}
