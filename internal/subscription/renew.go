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

// errorCode is the form of the words by which OAuth says why it refuses.
var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// ask has the provider renew a login. It does not follow redirects, which would lead a token elsewhere.
func (s *Source) ask(ctx context.Context, l login) (login, error) {
	body, err := json.Marshal(map[string]string{"grant_type": "refresh_token", "refresh_token": l.Refresh, "client_id": s.cfg.ClientID})
	if err != nil {
		return login{}, fmt.Errorf("ask for a renewed login: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.RenewURL, bytes.NewReader(body))
	if err != nil {
		return login{}, fmt.Errorf("ask for a renewed login: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "errand")
	resp, err := s.cfg.Transport.RoundTrip(req)
	if err != nil {
		return login{}, fmt.Errorf("ask for a renewed login: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxLogin))
	if err != nil {
		return login{}, fmt.Errorf("read the answer to a renewal: %w", err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return l.next(answer, s.cfg.Now())
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return login{}, fmt.Errorf("%w: it was not renewed (status %d%s)", ErrRefused, resp.StatusCode, why(answer))
	}
	return login{}, fmt.Errorf("ask for a renewed login: status %d", resp.StatusCode)
}

// why is the word by which an answer says what is wrong, as far as it is one.
func why(answer []byte) string {
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	var word string
	if json.Unmarshal(answer, &said) != nil || json.Unmarshal(said.Error, &word) != nil || !errorCode.MatchString(word) {
		return ""
	}
	return ", " + word
}

// next is the login that an answer makes of this one. Its error does not mean that the old one still works.
func (l login) next(answer []byte, now time.Time) (login, error) {
	var said struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		Ends    float64 `json:"expires_in"` // in seconds
	}
	if json.Unmarshal(answer, &said) != nil || !isToken(said.Access) || said.Refresh != "" && !isToken(said.Refresh) {
		return login{}, errors.New("read the answer to a renewal: it holds no token")
	}
	n := login{Access: said.Access, Refresh: said.Refresh, before: l.Refresh, file: l.file, own: l.own}
	if n.Refresh == "" {
		n.Refresh = l.Refresh // it is not changed
	}
	const longest = 10 * 365 * 24 * 60 * 60
	if said.Ends > 0 && said.Ends < longest {
		n.Ends = now.Add(time.Duration(said.Ends * float64(time.Second))).UTC()
	}
	return n, nil
}
