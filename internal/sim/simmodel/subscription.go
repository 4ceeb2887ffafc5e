package simmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Login is what somebody has who has logged in with a subscription.
type Login struct {
	Access, Refresh string
	Ends            time.Time // of Access
}

// account is a subscription, as its provider knows it.
type account struct {
	login Login
	life  time.Duration // of a token for calls
	all   []Login       // logins and renewals so far
}

// The path of renewals, and the header's value without which no token of a subscription is taken.
const (
	renewPath = "/v1/oauth/token"
	oauthBeta = "oauth-2025-04-20"
)

// Subscribe logs somebody in: from now on clients must present the token for calls of this login as a bearer token
// with the header that goes with it, and no key. It lives so long, and is renewed at /v1/oauth/token by the token
// for renewals, which is worth nothing from then on. What earlier logins had is worth nothing either.
func (s *Server) Subscribe(life time.Duration) Login {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account == nil {
		s.account = &account{}
	}
	s.account.life = life
	return s.account.next(s.cfg.Now())
}

// EndToken has the token for calls end at once, as a provider may; the login can be renewed.
func (s *Server) EndToken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != nil {
		s.account.login.Access = ""
	}
}

// EndLogin ends the login: nothing of it is taken any more.
func (s *Server) EndLogin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != nil {
		s.account.login = Login{}
	}
}

// Renewed returns how many logins and renewals there were.
func (s *Server) Renewed() int { return len(s.Logins()) }

// Logins returns all that was ever handed out, the oldest first, whether it is worth something still or not.
func (s *Server) Logins() []Login {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account == nil {
		return nil
	}
	return slices.Clone(s.account.all)
}

// next makes new tokens. The server's lock is held.
func (a *account) next(now time.Time) Login {
	n := len(a.all) + 1
	a.login = Login{Access: fmt.Sprintf("sk-sim-oat01-%06d-c0ffee", n), Refresh: fmt.Sprintf("sk-sim-ort01-%06d-decade", n), Ends: now.Add(a.life)}
	a.all = append(a.all, a.login)
	return a.login
}

// takes reports whether a call is made on the subscription as it has to be. The server's lock is held.
func (a *account) takes(r *http.Request, now time.Time) bool {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	beta := slices.Contains(strings.Split(strings.Join(r.Header.Values("Anthropic-Beta"), ","), ","), oauthBeta)
	return ok && beta && r.Header.Get("X-Api-Key") == "" && bearer != "" && bearer == a.login.Access && now.Before(a.login.Ends)
}

// serveRenewal answers as an OAuth server does.
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
