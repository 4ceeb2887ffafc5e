package selfclient_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/selfclient"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:8080": "127.0.0.1:8080", "[::]:8080": "[::1]:8080", "127.0.0.1:8080": "127.0.0.1:8080", "errand.lan:80": "errand.lan:80",
	} {
		if got := selfclient.Address(listen); got != want {
			t.Errorf("%s: got %s, want %s", listen, got, want)
		}
	}
}

// TestBase: only listen is reached by HTTPS, and only if errand serves it there.
func TestBase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		acme         bool
		listen, want string
	}{
		"plain":         {false, ":8080", "http://127.0.0.1:8080"},
		"HTTPS":         {true, ":8080", "https://errand.example.org"},
		"pages in HTTP": {true, "127.0.0.1:9090", "http://127.0.0.1:9090"},
	} {
		cfg := config.Config{Listen: ":8080", PublicURL: "https://Errand.example.org/", TLS: config.TLS{ACME: c.acme}}
		if _, got := selfclient.New(cfg, c.listen); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestPageOfAnotherProgramIsNotQuoted says what to do if a page answers at errand's address.
func TestPageOfAnotherProgramIsNotQuoted(t *testing.T) {
	t.Parallel()
	err := selfclient.Answer{Address: "127.0.0.1:1", Status: 404, Body: []byte("\n<!DOCTYPE HTML><p>Error code: 404")}.Unexpected().Error()
	if strings.Contains(err, "DOCTYPE") || !strings.Contains(err, "127.0.0.1:1 answered 404 Not Found with a page") || !strings.Contains(err, "errand doctor") {
		t.Errorf("got %s", err)
	}
}
