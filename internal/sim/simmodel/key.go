package simmodel

import (
	"net/http"
	"strings"
)

// SetKey changes the key that clients must present, as if the old one was revoked.
func (s *Server) SetKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.Key = key
}

// authorized reports whether the request contains the configured key in one of its three forms, or the token of a
// subscription.
func (s *Server) authorized(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.account != nil {
		return s.account.takes(r, s.cfg.Now())
	}
	key := s.cfg.Key
	if key == "" {
		return true
	}
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && bearer == key || r.Header.Get("X-Api-Key") == key || r.Header.Get("X-Goog-Api-Key") == key
}

// serveModels lists the models, with which clients check their key.
func (s *Server) serveModels(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		writeError(w, apiError{Status: http.StatusUnauthorized, Message: "invalid x-api-key"}, s.nextID("req"))
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"data": []any{}, "has_more": false})
}
