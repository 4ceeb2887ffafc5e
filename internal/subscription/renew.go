package subscription

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"
)

// errorCode matches the error codes of OAuth.
var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// requestRenewal asks the provider to renew a login. It does not follow redirects, which would send a token elsewhere.
func (s *Source) requestRenewal(ctx context.Context, l login) (login, error) {
	body, err := json.Marshal(map[string]string{"grant_type": "refresh_token", "refresh_token": l.Refresh, "client_id": ClientID})
	if err != nil {
		return login{}, fmt.Errorf("renew the login: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.RenewURL, bytes.NewReader(body))
	if err != nil {
		return login{}, fmt.Errorf("renew the login: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "errand")
	resp, err := s.cfg.Transport.RoundTrip(req)
	if err != nil {
		return login{}, fmt.Errorf("renew the login: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxLogin))
	if err != nil {
		return login{}, fmt.Errorf("read the response to a renewal: %w", err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return l.next(answer, s.cfg.Now())
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return login{}, fmt.Errorf("%w: it was not renewed (status %d%s)", ErrRefused, resp.StatusCode, oauthError(answer))
	}
	return login{}, fmt.Errorf("renew the login: status %d", resp.StatusCode)
}

// oauthError returns the error code in a response, or an empty string.
func oauthError(answer []byte) string {
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	var word string
	if json.Unmarshal(answer, &said) != nil || json.Unmarshal(said.Error, &word) != nil || !errorCode.MatchString(word) {
		return ""
	}
	return ", " + word
}

// next returns the login with the tokens of a response. After an error the old login may no longer work.
func (l login) next(answer []byte, now time.Time) (login, error) {
	var said struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		Ends    float64 `json:"expires_in"` // seconds
	}
	if json.Unmarshal(answer, &said) != nil || !isToken(said.Access) || said.Refresh != "" && !isToken(said.Refresh) {
		return login{}, errors.New("read the response to a renewal: it contains no token")
	}
	n := login{Access: said.Access, Refresh: said.Refresh, before: l.Refresh, file: l.file, own: l.own}
	if n.Refresh == "" {
		n.Refresh = l.Refresh // it is unchanged
	}
	const longest = 10 * 365 * 24 * 60 * 60
	if said.Ends > 0 && said.Ends < longest {
		n.Ends = now.Add(time.Duration(said.Ends * float64(time.Second))).UTC()
	}
	return n, nil
}
