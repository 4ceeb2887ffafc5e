package subscription_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/subscription"
)

// provider renews logins. Each refresh token works once.
type provider struct {
	*httptest.Server
	path   string // path of the login
	gate   chan struct{}
	answer func(w http.ResponseWriter) // replaces the response if set

	mu      sync.Mutex
	n       int // number of renewals
	asked   int
	refresh string
	learned map[string]bool
	now     time.Time
}

var start = time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)

func newProvider(t *testing.T) (*provider, *subscription.Source) {
	t.Helper()
	p := &provider{path: filepath.Join(t.TempDir(), "login.json"), refresh: "refresh-0", learned: map[string]bool{}, now: start}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	p.login(t, "access-0", "refresh-0", start.Add(8*time.Hour))
	return p, p.source()
}

func (p *provider) source() *subscription.Source {
	return subscription.New(subscription.Config{
		Login: p.path, RenewURL: p.URL,
		Learned: func(secrets ...string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, s := range secrets {
				p.learned[s] = true
			}
		},
		Now: func() time.Time {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.now
		},
	})
}

func (p *provider) pass(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *provider) login(t *testing.T, access, refresh string, ends time.Time) {
	t.Helper()
	text := fmt.Sprintf(`{"other":{"kept":1},"claudeAiOauth":{"accessToken":%q,"refreshToken":%q,"expiresAt":%d,"scopes":["user:inference"],"subscriptionType":"max"}}`, access, refresh, ends.UnixMilli())
	if err := os.WriteFile(p.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.gate != nil {
		<-p.gate
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	var ask map[string]string
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || ask["grant_type"] != "refresh_token" || ask["client_id"] != subscription.ClientID {
		http.Error(w, "what?", http.StatusTeapot)
		return
	}
	if p.answer != nil {
		p.answer(w)
		return
	}
	if ask["refresh_token"] != p.refresh {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"error":"invalid_grant","error_description":"`+ask["refresh_token"]+`"}`)
		return
	}
	p.n++
	p.refresh = fmt.Sprintf("refresh-%d", p.n)
	_, _ = fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":%q,"expires_in":28800}`, p.n, p.refresh)
}

func token(t *testing.T, s *subscription.Source, want string) {
	t.Helper()
	if got, err := s.Token(t.Context()); err != nil || got != want {
		t.Fatalf("token %q, %v; want %s", got, err, want)
	}
}

// TestRenewedInTime: a login is renewed shortly before its expiry, is then on disk with all unknown content, and
// another process can use it.
func TestRenewedInTime(t *testing.T) {
	t.Parallel()
	p, s := newProvider(t)
	token(t, s, "access-0")
	p.pass(7*time.Hour + 54*time.Minute)
	token(t, s, "access-0")
	if p.count() != 0 {
		t.Fatalf("asked %d times", p.count())
	}
	p.pass(time.Minute)
	token(t, s, "access-1")
	token(t, p.source(), "access-1")
	p.pass(8 * time.Hour)
	token(t, p.source(), "access-2")
	token(t, s, "access-2")
	if p.count() != 2 {
		t.Errorf("asked %d times", p.count())
	}
	data, err := os.ReadFile(p.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"other":{"kept":1}`, `"subscriptionType":"max"`, `"refreshToken":"refresh-2"`, `"scopes":["user:inference"]`} {
		if !strings.Contains(string(data), part) {
			t.Errorf("the file lacks %s: %s", part, data)
		}
	}
	info, err := os.Stat(p.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(p.path + "?*"); !slices.Equal(left, []string{p.path + ".lock"}) { // the lock file is empty and stays
		t.Errorf("leftover files: %v", left)
	}
	for _, secret := range []string{"access-0", "refresh-0", "access-1", "refresh-1", "access-2", "refresh-2"} {
		if !p.learned[secret] {
			t.Errorf("%s was not reported for redaction", secret)
		}
	}
}

// TestOneAtATime: many calls with a refused token cause one renewal, and a later call with the old token causes none.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	p, s := newProvider(t)
	p.gate = make(chan struct{})
	const many = 20
	var wg sync.WaitGroup
	got := make(chan string, many)
	for range many {
		wg.Go(func() {
			text, err := s.Renew(t.Context(), "access-0")
			if err != nil {
				text = err.Error()
			}
			got <- text
		})
	}
	close(p.gate)
	wg.Wait()
	close(got)
	for text := range got {
		if text != "access-1" {
			t.Errorf("got %s", text)
		}
	}
	if text, err := s.Renew(t.Context(), "access-0"); err != nil || text != "access-1" || p.count() != 1 {
		t.Errorf("late: %s, %v, asked %d times", text, err, p.count())
	}
}

// TestGivenUp: a caller that gives up does not abort the renewal it began.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	p, s := newProvider(t)
	p.gate = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Renew(ctx, "access-0"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	close(p.gate)
	if text, err := s.Renew(t.Context(), "access-0"); err != nil || text != "access-1" || p.count() != 1 {
		t.Errorf("%s, %v, asked %d times", text, err, p.count())
	}
}

// TestRefusedLoginNeedsAPerson: the error asks a person to act and contains no token, and a new login is used without a restart.
func TestRefusedLoginNeedsAPerson(t *testing.T) {
	t.Parallel()
	p, s := newProvider(t)
	p.login(t, "access-0", "stolen-and-used", start)
	_, err := s.Token(t.Context())
	if !errors.Is(err, subscription.ErrRefused) || !strings.Contains(err.Error(), "status 400, invalid_grant") || strings.Contains(err.Error(), "stolen") {
		t.Fatalf("%v", err)
	}
	p.login(t, "access-9", "refresh-0", start.Add(time.Hour))
	token(t, s, "access-9")
	p.login(t, "access-9", "", start)
	if _, err := s.Token(t.Context()); !errors.Is(err, subscription.ErrRefused) {
		t.Errorf("without a refresh token: %v", err)
	}
	fixed := subscription.New(subscription.Config{Token: "long-lived"})
	token(t, fixed, "long-lived")
	if _, err := fixed.Renew(t.Context(), "long-lived"); !errors.Is(err, subscription.ErrRefused) {
		t.Errorf("a token that lives for long: %v", err)
	}
}

// TestTemporaryErrorsNeedNoPerson: temporary errors do not ask a person to act. A token that is still valid is used meanwhile.
func TestTemporaryErrorsNeedNoPerson(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"a fault": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		"a limit": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"elsewhere": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"no token": func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, `{"access_token":"two\nlines"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s := newProvider(t)
			p.answer = answer
			p.pass(8*time.Hour - time.Minute)
			token(t, s, "access-0")
			p.pass(time.Minute)
			if _, err := s.Token(t.Context()); err == nil || errors.Is(err, subscription.ErrRefused) || strings.Contains(err.Error(), "refresh-0") {
				t.Errorf("%v", err)
			}
			if p.count() != 2 {
				t.Errorf("asked %d times", p.count())
			}
		})
	}
}

// TestNoRoom: if nothing can be written, the refresh token is not used. Restoring the folder is sufficient.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	p, s := newProvider(t)
	if err := os.Mkdir(p.path+".new", 0o700); err != nil { // not even root can write a file of this name
		t.Fatal(err)
	}
	if text, err := s.Renew(t.Context(), "access-0"); err == nil || p.count() != 0 {
		t.Fatalf("%q, asked %d times", text, p.count())
	}
	if err := os.Remove(p.path + ".new"); err != nil {
		t.Fatal(err)
	}
	if text, err := s.Renew(t.Context(), "access-0"); err != nil || text != "access-1" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestFiles: an unusable file is reported with advice and without its content.
func TestFiles(t *testing.T) {
	t.Parallel()
	const good = `{"claudeAiOauth":{"accessToken":"sk-secret","refreshToken":"rt-secret"}}`
	for name, test := range map[string]struct {
		text, says string
		mode       os.FileMode
	}{
		"good":      {good, "", 0o600},
		"open":      {good, "chmod 600", 0o640},
		"no JSON":   {"sk-secret", "not JSON", 0o600},
		"a list":    {`["sk-secret"]`, "not JSON", 0o600},
		"Codex":     {`{"OPENAI_API_KEY":null,"tokens":{"access_token":"sk-secret"}}`, "login of Codex", 0o600},
		"others":    {`{"accessToken":"sk-secret"}`, "not a login of Claude Code", 0o600},
		"null":      {`{"claudeAiOauth":null}`, "not a login of Claude Code", 0o600},
		"no token":  {`{"claudeAiOauth":{"refreshToken":"rt-secret"}}`, "no valid tokens", 0o600},
		"two lines": {`{"claudeAiOauth":{"accessToken":"sk-\r\nsecret"}}`, "no valid tokens", 0o600},
		"large":     {good + strings.Repeat(" ", 70_000), "larger", 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "login.json")
			if err := os.WriteFile(path, []byte(test.text), test.mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			secrets, err := subscription.Secrets(path)
			if test.says == "" {
				if err != nil || strings.Join(secrets, " ") != "sk-secret rt-secret" {
					t.Errorf("%v, %v", secrets, err)
				}
				return
			}
			if !errors.Is(err, subscription.ErrRefused) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := subscription.Secrets(filepath.Join(t.TempDir(), "none")); !errors.Is(err, subscription.ErrRefused) {
		t.Errorf("no file: %v", err)
	}
}

// TestDurableBeforeUsed: a renewed login that cannot be written is not used, although the old one is invalid; it is
// used as soon as it is written. A process that starts in between finds the old login and returns an error.
func TestDurableBeforeUsed(t *testing.T) {
	t.Parallel()
	p, s := newProvider(t)
	p.answer = func(w http.ResponseWriter) {
		p.answer, p.refresh = nil, "refresh-1"
		if err := os.Remove(p.path + ".new"); err != nil { // so that it cannot replace the old one
			t.Error(err)
		}
		_, _ = fmt.Fprint(w, `{"access_token":"access-1","refresh_token":"refresh-1","expires_in":28800}`)
	}
	if text, err := s.Renew(t.Context(), "access-0"); err == nil || errors.Is(err, subscription.ErrRefused) {
		t.Fatalf("%q, %v", text, err)
	}
	if _, err := p.source().Renew(t.Context(), "access-0"); !errors.Is(err, subscription.ErrRefused) { // after a restart
		t.Errorf("%v", err)
	}
	token(t, s, "access-1")
	token(t, p.source(), "access-1")
	if p.count() != 2 {
		t.Errorf("asked %d times", p.count())
	}
}

func FuzzLogin(f *testing.F) {
	f.Add([]byte(`{"claudeAiOauth":{"accessToken":"a","refreshToken":"b","expiresAt":1}}`))
	f.Add([]byte(`{"tokens":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "login")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		secrets, err := subscription.Secrets(path)
		if err == nil && (secrets[0] == "" || strings.ContainsAny(strings.Join(secrets, ""), " \r\n\x00")) {
			t.Errorf("%q", secrets)
		}
	})
}
