package simmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Login is the result of a login with a subscription.
type Login struct {
	Access, Refresh string
	Ends            time.Time // expiry of Access
}

// account is a subscription on the provider's side.
type account struct {
	login Login
	life  time.Duration // lifetime of an access token
	all   []Login       // logins and renewals so far
}

// The path of renewals, and the header value required with tokens of a subscription.
const (
	renewPath = "/v1/oauth/token"
	oauthBeta = "oauth-2025-04-20"
)

// Subscribe creates a login: from now on clients must send its access token as a bearer token with the matching header,
// and no key. The token is valid for life, and is renewed at /v1/oauth/token with the refresh token, which is then
// invalid. Tokens of earlier logins become invalid, too.
func (s *Server) Subscribe(life time.Duration) Login {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account == nil {
		s.account = &account{}
	}
	s.account.life = life
	return s.account.next(s.cfg.Now())
}

// EndToken invalidates the access token immediately, as a provider may; the login can be renewed.
func (s *Server) EndToken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != nil {
		s.account.login.Access = ""
	}
}

// EndLogin invalidates the login with all its tokens.
func (s *Server) EndLogin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != nil {
		s.account.login = Login{}
	}
}

// Renewed returns the number of logins and renewals.
func (s *Server) Renewed() int { return len(s.Logins()) }

// Logins returns all logins and renewals, oldest first, valid or not.
func (s *Server) Logins() []Login {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account == nil {
		return nil
	}
	return slices.Clone(s.account.all)
}

// next creates new tokens. The caller holds the server's lock.
func (a *account) next(now time.Time) Login {
	n := len(a.all) + 1
	a.login = Login{Access: fmt.Sprintf("sk-sim-oat01-%06d-c0ffee", n), Refresh: fmt.Sprintf("sk-sim-ort01-%06d-decade", n), Ends: now.Add(a.life)}
	a.all = append(a.all, a.login)
	return a.login
}

// takes reports whether a request is correctly authenticated with the subscription. The caller holds the server's lock.
func (a *account) takes(r *http.Request, now time.Time) bool {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	beta := slices.Contains(strings.Split(strings.Join(r.Header.Values("Anthropic-Beta"), ","), ","), oauthBeta)
	return ok && beta && r.Header.Get("X-Api-Key") == "" && bearer != "" && bearer == a.login.Access && now.Before(a.login.Ends)
}

// serveRenewal responds like an OAuth server.
func (s *Server) serveRenewal(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Grant   string `json:"grant_type"`
		Refresh string `json:"refresh_token"`
		Client  string `json:"client_id"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&ask); err != nil || ask.Grant != "refresh_token" || ask.Client == "" {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account == nil || ask.Refresh == "" || ask.Refresh != s.account.login.Refresh {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "Refresh token not found or invalid"})
		return
	}
	l := s.account.next(s.cfg.Now())
	writeJSON(w, http.StatusOK, map[string]any{"token_type": "Bearer", "access_token": l.Access, "refresh_token": l.Refresh, "expires_in": int(s.account.life.Seconds())})
}
