package simgithub

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// tokenLife is the lifetime of an installation token.
const tokenLife = time.Hour

// session returns the session of the sender of a request.
func (a authenticator) session(r *http.Request) *session {
	cred, ok := credential(r)
	if !ok {
		return &session{s: a.s}
	}
	if !strings.HasPrefix(cred, "gh") && strings.Count(cred, ".") == 2 {
		if err := a.checkJWT(cred); err != nil {
			return &session{s: a.s, bad: err}
		}
		return &session{s: a.s, jwt: true}
	}
	tok, ok := a.s.tokens[cred]
	if !ok || !tok.expires.IsZero() && !a.s.cfg.AuthNow().Before(tok.expires) {
		return &session{s: a.s, bad: errBadCredentials()}
	}
	if tok.install == nil {
		return &session{s: a.s, by: tok.user, signedIn: tok.signIn}
	}
	if !slices.Contains(a.s.installs, tok.install) {
		return &session{s: a.s, bad: errBadCredentials()}
	}
	x := &session{s: a.s, by: a.s.users[a.s.app.BotLogin], tok: tok}
	if tok.install.Suspended {
		x.bad = errForbidden("This installation has been suspended")
	}
	return x
}

// credential returns the credential of an Authorization header: Bearer, token, or Basic with the token as password.
func credential(r *http.Request) (string, bool) {
	if _, pass, ok := r.BasicAuth(); ok {
		return pass, true
	}
	kind, cred, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(kind, "bearer") && !strings.EqualFold(kind, "token") {
		return "", false
	}
	return strings.TrimSpace(cred), true
}

// checkJWT accepts a JWT that the App signed by RS256, with its own id as issuer and a lifetime of at most ten minutes.
func (a authenticator) checkJWT(cred string) error {
	refuse := func(msg string) error { return &Error{Status: http.StatusUnauthorized, Message: msg} }
	var claims jwt.RegisteredClaims
	p := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	if _, err := p.ParseWithClaims(cred, &claims, func(*jwt.Token) (any, error) { return &a.s.key.PublicKey, nil }); err != nil {
		return refuse("A JSON web token could not be decoded")
	}
	now := a.s.cfg.AuthNow()
	switch {
	case claims.Issuer != itoa(a.s.app.ID) && claims.Issuer != a.s.app.ClientID:
		return refuse("'Issuer' claim ('iss') must be an Integer")
	case claims.ExpiresAt == nil || !now.Before(claims.ExpiresAt.Time):
		return refuse("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case claims.ExpiresAt.After(now.Add(10*time.Minute + 5*time.Second)):
		return refuse("'Expiration time' claim ('exp') is too far in the future")
	case claims.IssuedAt == nil || claims.IssuedAt.After(now.Add(time.Minute)):
		return refuse("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	}
	return nil
}

// tokenRequest limits an installation token to some repositories and permissions.
type tokenRequest struct {
	Repositories  []string          `json:"repositories"`
	RepositoryIDs []int64           `json:"repository_ids"`
	Permissions   map[string]string `json:"permissions"`
}

// mint creates an installation token. The error is a 422 if more is requested than was granted.
func (a authenticator) mint(in *Installation, req tokenRequest) (string, *token, error) {
	perms := maps.Clone(in.Permissions)
	if len(req.Permissions) > 0 {
		perms = map[string]string{"metadata": "read"}
		for p, level := range req.Permissions {
			if levelRank(level) == 0 || levelRank(in.Permissions[p]) < levelRank(level) {
				return "", nil, errUnprocessable("The permissions requested are not granted to this installation.")
			}
			perms[p] = level
		}
	}
	var repos []int64
	for _, id := range req.RepositoryIDs {
		if !in.has(id) {
			return "", nil, errUnprocessable("There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
		repos = append(repos, id)
	}
	for _, name := range req.Repositories {
		r, ok := a.s.repos[repoKey(in.Account+"/"+name)]
		if !ok || !in.has(r.ID) {
			return "", nil, errUnprocessable("There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
		repos = append(repos, r.ID)
	}
	t := &token{install: in, repos: repos, perms: perms, expires: a.s.cfg.AuthNow().UTC().Add(tokenLife).Truncate(time.Second)}
	cred := fmt.Sprintf("ghs_%d_%s", a.s.app.ID, randomToken())
	a.s.tokens[cred] = t
	return cred, t, nil
}

// randomToken returns a token in the format of 2026: about 500 characters in three parts separated by dots.
func randomToken() string {
	part := func(n int) string {
		b := make([]byte, n)
		_, _ = rand.Read(b) // never fails, by its contract
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return part(30) + "." + part(160) + "." + part(190)
}

// Tokens returns all valid tokens, for tests that search for leaked ones.
func (s *Sim) Tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.tokens))
}

// ExpireTokens makes all installation tokens invalid, as if an hour had passed.
func (s *Sim) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for cred, t := range s.tokens {
		if t.install != nil {
			delete(s.tokens, cred)
		}
	}
}

// callerKind returns the kind of a sender by its credential: app (JWT), installation, user or nobody.
func callerKind(r *http.Request) string {
	cred, ok := credential(r)
	switch {
	case !ok:
		return "nobody"
	case strings.HasPrefix(cred, "ghp_"):
		return "user"
	case strings.HasPrefix(cred, "ghu_"):
		return "signed-in user"
	case !strings.HasPrefix(cred, "gh") && strings.Count(cred, ".") == 2:
		return "app"
	default:
		return "installation"
	}
}
