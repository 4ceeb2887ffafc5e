package login

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	cookieName = "errand_admin"
	cookieLife = 7 * 24 * time.Hour

	// factGeneration names the generation of sessions: a random text that each logout replaces.
	factGeneration = "admin_sessions"
)

// sessions issues and checks session cookies. A cookie holds its expiry and a MAC over it, the admin token and the
// current generation. A new generation, or another token, invalidates every earlier cookie: there is one token for all
// operators, so a logout ends all of its sessions.
type sessions struct {
	token string
	facts Facts
	now   func() time.Time
}

func newSessions(cfg Config) *sessions {
	s := &sessions{token: cfg.Token, facts: cfg.Facts, now: cfg.Now}
	if s.facts == nil {
		s.facts = &memory{values: map[string][]byte{}}
	}
	return s
}

// begin returns the value of a new cookie.
func (s *sessions) begin(ctx context.Context) (string, error) {
	return s.sign(ctx, strconv.FormatInt(s.now().Add(cookieLife).Unix(), 10))
}

// sign returns the cookie that expires then, in the current generation.
func (s *sessions) sign(ctx context.Context, unix string) (string, error) {
	generation, err := s.facts.Fact(ctx, factGeneration)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, []byte(s.token))
	mac.Write([]byte("admin session until " + unix + " generation " + string(generation)))
	return unix + "." + hex.EncodeToString(mac.Sum(nil)), nil
}

// valid reports whether the request has an unexpired session. An error means that the session could not be checked.
func (s *sessions) valid(r *http.Request) (bool, error) {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return false, nil
	}
	text, _, _ := strings.Cut(c.Value, ".")
	unix, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !s.now().Before(time.Unix(unix, 0)) {
		return false, nil
	}
	want, err := s.sign(r.Context(), text)
	return err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(want)) == 1, err
}

// end ends all sessions.
func (s *sessions) end(ctx context.Context) error {
	return s.facts.SetFact(ctx, factGeneration, []byte(rand.Text()))
}

// memory stores facts for the lifetime of the process.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
}

// Fact returns the value stored by SetFact, nil if there is none.
func (m *memory) Fact(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[name], nil
}

// SetFact stores a value.
func (m *memory) SetFact(_ context.Context, name string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = value
	return nil
}
