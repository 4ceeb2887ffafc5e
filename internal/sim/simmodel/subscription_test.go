package simmodel_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// TestSubscription: a call needs the token of the current login and the matching header; a refresh token works once.
func TestSubscription(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	s, err := simmodel.New(simmodel.Config{Key: "sk-key", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body, token, beta, key string) (int, map[string]any) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		for name, value := range map[string]string{"Authorization": "Bearer " + token, "Anthropic-Beta": beta, "X-Api-Key": key} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var out map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &out)
		return w.Code, out
	}
	call := func(token, beta, key string) int {
		code, _ := ask(http.MethodGet, "/v1/models", "", token, beta, key)
		return code
	}
	renew := func(token string) (int, map[string]any) {
		return ask(http.MethodPost, "/v1/oauth/token", `{"grant_type":"refresh_token","client_id":"c","refresh_token":"`+token+`"}`, "", "", "")
	}
	const beta = "claude-code-20250219,oauth-2025-04-20"
	l := s.Subscribe(time.Hour)
	for name, test := range map[string]struct{ got, want int }{
		"correct": {call(l.Access, beta, ""), 200}, "without the header": {call(l.Access, "claude-code-20250219", ""), 401},
		"with a key, too": {call(l.Access, beta, "sk-key"), 401}, "the key alone": {call("sk-key", "", ""), 401}, "the other token": {call(l.Refresh, beta, ""), 401},
	} {
		if test.got != test.want {
			t.Errorf("%s: got status %d, want %d", name, test.got, test.want)
		}
	}
	code, answer := renew(l.Refresh)
	next, _ := answer["access_token"].(string)
	if code != http.StatusOK || call(next, beta, "") != http.StatusOK || call(l.Access, beta, "") != http.StatusUnauthorized {
		t.Errorf("renewal: got status %d, %v", code, answer)
	}
	if code, answer := renew(l.Refresh); code != http.StatusBadRequest || answer["error"] != "invalid_grant" {
		t.Errorf("second use: got status %d, %v", code, answer)
	}
	now = now.Add(time.Hour)
	if code := call(next, beta, ""); code != http.StatusUnauthorized {
		t.Errorf("after the token's end: got status %d", code)
	}
	s.EndLogin()
	refresh, _ := answer["refresh_token"].(string)
	if code, _ := renew(refresh); code != http.StatusBadRequest || s.Renewed() != 2 {
		t.Errorf("after the login's end: got status %d, %d", code, s.Renewed())
	}
}
