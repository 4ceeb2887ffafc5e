package forge_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge"
)

// testKey makes one signing key for all tests of the process: making one takes a while.
var testKey = sync.OnceValue(func() []byte {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
})

var testRepo = forge.Repo{Installation: 7, Owner: "octo", Name: "app", ID: 70}

// fake is a GitHub of a few lines: it gives tokens, and hands everything else to handle.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	calls []string // METHOD path, tokens left out
}

func (f *fake) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func newFake(t *testing.T, handle http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/access_tokens") {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token":"ghs_test","expires_at":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
			return
		}
		f.mu.Lock()
		f.calls = append(f.calls, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v3"))
		f.mu.Unlock()
		handle(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// newForge makes a forge on a server, with changes to the configuration.
func newForge(t *testing.T, base string, change ...func(*forge.Config)) *forge.Forge {
	t.Helper()
	cfg := forge.Config{
		AppID: 1, PrivateKey: testKey(), WebURL: base, V3APIURL: base + "/api/v3/", V4APIURL: base + "/api/graphql",
		Transport: &http.Transport{DisableKeepAlives: true}, // else it repeats some reads by itself
		Backoff:   time.Millisecond, Writes: forge.Pace{Burst: 1000}, Data: forge.Pace{Burst: 1000},
	}
	for _, c := range change {
		c(&cfg)
	}
	f, err := forge.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

type m = map[string]any
