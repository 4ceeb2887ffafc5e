// Package subscription holds what calls on a subscription to a provider of models are made with, in place of a
// key: a token that lives for long, or a login, of which the token for calls lives for hours and has to be renewed.
//
// A login is a file that only errand may read, in the form in which Claude Code keeps its own. Whoever renews it
// gets another token for the next renewal, too, and the old one is worth nothing from then on. The new ones are
// therefore on disk before anybody uses them, and one renewal is under way at a time. What no program can prevent:
// if errand dies after the provider has answered and before that is on disk, a person has to log in again.
//
// The package knows neither tasks nor the gateway, and never logs a token. Start reading at Source.
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

// ErrRefused says that a person has to act: the provider does not renew the login, there is nothing to renew it
// with, or its file cannot be used. Its text names no secret.
var ErrRefused = errors.New("the subscription cannot be used")

// Where and as whom a login of Claude Code is renewed, as of that program in 2026. Both are public.
const (
	RenewURL = "https://platform.claude.com/v1/oauth/token"
	ClientID = "9d1c250a-e61b-44d9-88ed-5944d1962f5e"
)

const (
	// early is how long before its end a token is renewed, and left over for a call that begins meanwhile.
	early = 5 * time.Minute
	// renewTimeout bounds one renewal, all of it.
	renewTimeout = 30 * time.Second
)

// Config is what a Source is made of: Token, or Login and where it is renewed.
type Config struct {
	// Token is used as it is, as long as the provider takes it.
	Token string
	// Login is the path of the file with the login. It is written anew at each renewal, in its folder.
	Login string
	// RenewURL and ClientID are the constants of these names unless set.
	RenewURL, ClientID string
	// Transport carries renewals; nil is http.DefaultTransport.
	Transport http.RoundTripper
	// Learned hears of each secret before it is used or written, so that it can be blanked everywhere. It may be nil.
	Learned func(secrets ...string)
	Now     func() time.Time // nil is the clock
}

// Source gives the token that calls are made with. It is safe for concurrent use.
type Source struct {
	cfg Config
	one singleflight.Group

	mu      sync.Mutex
	unsaved *login // renewed, and not on disk yet: nobody uses it before it is
	told    string // the token that Learned has heard of last
}

// New makes a Source. It reads nothing.
func New(cfg Config) *Source {
	if cfg.RenewURL == "" {
		cfg.RenewURL = RenewURL
	}
	if cfg.ClientID == "" {
		cfg.ClientID = ClientID
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

// Login is the file that is used, empty for a token. A person who replaces it is heard at the next call.
func (s *Source) Login() string { return s.cfg.Login }

// Token returns the token for a call, renewed if it is about to end. The error is ErrRefused, or it passes.
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
		return l.Access, nil // it lives on for a while, and the next call tries again
	}
	return token, err
}

// Renew returns a token for another try of a call for which the provider refused this one. If somebody has renewed
// it meanwhile, that is it. The error is ErrRefused, or it passes.
func (s *Source) Renew(ctx context.Context, refused string) (string, error) {
	if s.cfg.Login == "" {
		return "", fmt.Errorf("%w: the provider does not take the token", ErrRefused)
	}
	return s.renewed(ctx, refused)
}

// renewed has all who want a renewal wait for the same one, which goes on whoever of them gives up.
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

// renew has the login renewed, unless the token is another one than the old by now, and lives.
func (s *Source) renew(ctx context.Context, old string) (string, error) {
	if l, err := s.current(); err != nil || s.lives(l, old) {
		return l.Access, err
	}
	place, err := newPlace(s.cfg.Login) // a disk that cannot be written is found while the old token still works
	if err != nil {
		return "", fmt.Errorf("make room for a renewed login: %w", err)
	}
	defer place.drop()
	l, err := read(s.cfg.Login) // again: it is nobody else's to write from here on
	switch {
	case err != nil || s.lives(l, old):
		return l.Access, err
	case l.Refresh == "":
		return "", fmt.Errorf("%w: %s has no token to renew it with", ErrRefused, s.cfg.Login)
	}
	next, err := s.ask(ctx, l)
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

// lives reports whether a login has another token than the old, and one that does not end soon.
func (s *Source) lives(l login, old string) bool {
	return l.Access != "" && l.Access != old && (l.Ends.IsZero() || l.Ends.Sub(s.cfg.Now()) > early)
}

// current is the login as it is on disk. One that could not be written before is written now.
func (s *Source) current() (l login, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err = read(s.cfg.Login)
	if u := s.unsaved; u != nil && (err != nil || l.Refresh == u.before || l.Refresh == u.Refresh) { // else somebody has logged in anew
		place, err := newPlace(s.cfg.Login)
		if err != nil {
			return login{}, fmt.Errorf("make room for a renewed login: %w", err)
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
	if l.Access != s.told {
		s.told = l.Access
		s.cfg.Learned(l.Access, l.Refresh)
	}
	return l, nil
}
