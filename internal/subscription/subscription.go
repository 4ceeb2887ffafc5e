// Package subscription provides the token for model calls on a subscription, in place of an API key: either a
// long-lived token or a login, whose access token lives for hours and must be renewed.
//
// A login is a file that only errand may read, in Claude Code's format. Each renewal also returns a new refresh token
// and invalidates the old one. Therefore the new tokens are written to disk before they are used, and only one renewal
// is in flight at a time. One failure cannot be prevented: if errand dies between the provider's response and the
// write, a person must log in again.
//
// The package does not know tasks or the gateway, and never logs a token.
//
// Start here: [Source].
package subscription

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// ErrRefused reports that a person must act: the provider does not renew the login, the login has no refresh token, or
// its file is unusable. Its text contains no secret.
var ErrRefused = errors.New("the subscription cannot be used")

// Endpoint and client ID for renewing a login of Claude Code, as used by that program in 2026. Both are public.
const (
	RenewURL = "https://platform.claude.com/v1/oauth/token"
	ClientID = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
)

const (
	// early is how long before its expiry a token is renewed, so that calls can finish with it.
	early = 5 * time.Minute
	// renewTimeout limits one renewal in total.
	renewTimeout = 30 * time.Second
)

// Config configures a [Source]: either Token, or Login and the renewal endpoint.
type Config struct {
	// Token is used unchanged as long as the provider accepts it.
	Token string
	// Login is the path of the login file. Each renewal replaces the file in its folder.
	Login string
	// RenewURL defaults to the constant of this name.
	RenewURL string
	// Transport sends renewals; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Learned is called with each secret before it is used or written, so that it can be redacted everywhere. It may be
	// nil.
	Learned func(secrets ...string)
	Now     func() time.Time // nil means time.Now
}

// A Source provides the token for model calls. It is safe for concurrent use.
type Source struct {
	cfg Config
	one singleflight.Group

	mu      sync.Mutex
	unsaved *login // renewed but not written yet, so not in use
	learned string // the token last passed to Learned
}

// New returns a [Source]. It reads no file.
func New(cfg Config) *Source {
	if cfg.RenewURL == "" {
		cfg.RenewURL = RenewURL
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Learned == nil {
		cfg.Learned = func(...string) {}
	}
	return &Source{cfg: cfg}
}

// Login returns the path of the login file, empty for a token. A replaced file is used from the next call on.
func (s *Source) Login() string { return s.cfg.Login }

// Token returns the token for a call, renewing it if it is about to expire. An error wraps [ErrRefused] or is
// temporary.
func (s *Source) Token(ctx context.Context) (string, error) {
	if s.cfg.Login == "" {
		return s.cfg.Token, nil
	}
	l, err := s.current()
	if err != nil {
		return "", err
	}
	if l.Ends.IsZero() || l.Ends.Sub(s.cfg.Now()) > early {
		return l.Access, nil
	}
	token, err := s.renewed(ctx, l.Access)
	if err != nil && !errors.Is(err, ErrRefused) && l.Ends.After(s.cfg.Now()) {
		return l.Access, nil // the token is still valid for a while; the next call retries
	}
	return token, err
}

// Renew returns a token for retrying a call after the provider refused the given token. If that token has been replaced
// since, Renew returns the current one. An error wraps [ErrRefused] or is temporary.
func (s *Source) Renew(ctx context.Context, refused string) (string, error) {
	if s.cfg.Login == "" {
		return "", fmt.Errorf("%w: the provider rejected the token", ErrRefused)
	}
	return s.renewed(ctx, refused)
}

// renewed lets all callers wait for the same renewal, which continues if a caller gives up.
func (s *Source) renewed(ctx context.Context, old string) (string, error) {
	done := s.one.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
		defer cancel()
		return s.renew(ctx, old)
	})
	select {
	case r := <-done:
		token, _ := r.Val.(string)
		return token, r.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// renew renews the login unless it already has another token than old that is not about to expire.
func (s *Source) renew(ctx context.Context, old string) (string, error) {
	if l, err := s.current(); err != nil || s.isFresh(l, old) {
		return l.Access, err
	}
	place, err := newPlace(s.cfg.Login) // detects an unwritable disk while the old token still works
	if err != nil {
		return "", fmt.Errorf("reserve space for a renewed login: %w", err)
	}
	defer place.drop()
	l, err := read(s.cfg.Login) // read again: from here on this process holds the lock
	switch {
	case err != nil || s.isFresh(l, old):
		return l.Access, err
	case l.Refresh == "":
		return "", fmt.Errorf("%w: %s has no refresh token", ErrRefused, s.cfg.Login)
	}
	next, err := s.requestRenewal(ctx, l)
	if err != nil {
		return "", err
	}
	s.cfg.Learned(next.Access, next.Refresh)
	if err := place.write(next); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unsaved = &next
		return "", fmt.Errorf("write the renewed login: %w", err)
	}
	return next.Access, nil
}

// isFresh reports whether a login has another token than old, and one that is not about to expire.
func (s *Source) isFresh(l login, old string) bool {
	return l.Access != "" && l.Access != old && (l.Ends.IsZero() || l.Ends.Sub(s.cfg.Now()) > early)
}

// current returns the login on disk. It first writes a renewed login that could not be written before.
func (s *Source) current() (l login, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err = read(s.cfg.Login)
	// Any other login means that a person has logged in again.
	if u := s.unsaved; u != nil && (err != nil || l.Refresh == u.before || l.Refresh == u.Refresh) {
		place, err := newPlace(s.cfg.Login)
		if err != nil {
			return login{}, fmt.Errorf("reserve space for a renewed login: %w", err)
		}
		defer place.drop()
		if err := place.write(*u); err != nil {
			return login{}, fmt.Errorf("write the renewed login: %w", err)
		}
		l = *u
	} else if err != nil {
		return login{}, err
	}
	s.unsaved = nil
	if l.Access != s.learned {
		s.learned = l.Access
		s.cfg.Learned(l.Access, l.Refresh)
	}
	return l, nil
}
