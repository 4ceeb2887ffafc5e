package simgithubtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// secret is the secret of the App's webhooks.
const secret = "s3cret"

// Inbox is the App's webhook endpoint.
type Inbox struct {
	server *httptest.Server
	mu     sync.Mutex
	got    []Hook
	status int
}

// Hook is a received webhook.
type Hook struct {
	Header http.Header
	Body   []byte
	Valid  bool // its signature is right
}

func (h Hook) name() string {
	var p struct{ Action string }
	_ = json.Unmarshal(h.Body, &p)
	return strings.TrimSuffix(h.Header.Get("X-GitHub-Event")+"."+p.Action, ".")
}

func newInbox(t *testing.T) *Inbox {
	in := &Inbox{status: http.StatusOK}
	in.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		valid := r.Header.Get("X-Hub-Signature-256") == "sha256="+hex.EncodeToString(mac.Sum(nil))
		in.mu.Lock()
		defer in.mu.Unlock()
		in.got = append(in.got, Hook{r.Header.Clone(), body, valid})
		w.WriteHeader(in.status)
	}))
	t.Cleanup(in.server.Close)
	return in
}

// URL returns the address of the endpoint.
func (in *Inbox) URL() string { return in.server.URL }

// Answer sets the status of all further answers.
func (in *Inbox) Answer(status int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.status = status
}

// Take returns "event.action" of the webhooks since the last call.
func (in *Inbox) Take() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var names []string
	for _, h := range in.got {
		names = append(names, h.name())
	}
	in.got = nil
	return names
}

// Hooks returns the webhooks since the last call of Take.
func (in *Inbox) Hooks() []Hook {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.got)
}

// Last returns the newest webhook of a name since the last call of Take.
func (in *Inbox) Last(name string) (Hook, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for n := len(in.got) - 1; n >= 0; n-- {
		if in.got[n].name() == name {
			return in.got[n], true
		}
	}
	return Hook{}, false
}
