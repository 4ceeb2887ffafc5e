package simgithub

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	codeLife      = 10 * time.Minute // of the code of an authorization
	userTokenLife = 8 * time.Hour
)

// AuthorizeRequest is the query of the page on which a person authorizes the App to act for them.
type AuthorizeRequest struct {
	ClientID, RedirectURI, State string
	CodeChallenge, Method        string // PKCE; both empty without it
}

// userCode is the code of a person's authorization until it is exchanged for a token.
type userCode struct {
	user      *User
	redirect  string
	challenge string
	expires   time.Time
}

// SetCallbackURLs sets the addresses to which GitHub may send people who have authorized the App.
func (s *Sim) SetCallbackURLs(urls ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.app.CallbackURLs = urls
}

// CheckAuthorization returns an error for a request that GitHub refuses before it asks the person.
func (s *Sim) CheckAuthorization(req AuthorizeRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkAuthorization(req)
}

func (s *Sim) checkAuthorization(req AuthorizeRequest) error {
	switch {
	case req.ClientID != s.app.ClientID:
		return errNotFound()
	case !slices.Contains(s.app.CallbackURLs, req.RedirectURI):
		return errUnprocessable("The redirect_uri is not a callback URL of this application.")
	case req.Method != "" && req.Method != "S256", (req.Method == "") != (req.CodeChallenge == ""), req.Method != "" && len(req.CodeChallenge) != 43:
		return errUnprocessable("The code_challenge has to be a SHA-256 hash, and the code_challenge_method S256.")
	}
	return nil
}

// HasAuthorized reports whether the person authorized the App before: GitHub then does not ask again.
func (p Person) HasAuthorized() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.s.authorized[p.s.users[p.login].ID]
}

// Authorize authorizes the App and returns the address to which GitHub sends the person, with a code.
func (p Person) Authorize(req AuthorizeRequest) (to string, err error) {
	err = p.do(func(x *session) error {
		if err := x.s.checkAuthorization(req); err != nil {
			return err
		}
		if x.by == nil || x.by.Type != TypeUser {
			return errNeedAuth()
		}
		code := randomHex(10)
		x.s.userCodes[code] = userCode{
			user: x.by, redirect: req.RedirectURI, challenge: req.CodeChallenge, expires: x.s.cfg.AuthNow().Add(codeLife),
		}
		x.s.authorized[x.by.ID] = true
		to = answerTo(req, url.Values{"code": {code}})
		return nil
	})
	return to, err
}

// Deny returns the address to which GitHub sends a person who does not authorize the App.
func (p Person) Deny(req AuthorizeRequest) (to string, err error) {
	if err := p.s.CheckAuthorization(req); err != nil {
		return "", err
	}
	return answerTo(req, url.Values{"error": {"access_denied"}, "error_description": {"The user has denied your application access."}}), nil
}

func answerTo(req AuthorizeRequest, q url.Values) string {
	if req.State != "" {
		q.Set("state", req.State)
	}
	return req.RedirectURI + "?" + q.Encode()
}

// RevokeAuthorization ends the authorization of the App by a person: their tokens become invalid.
func (s *Sim) RevokeAuthorization(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[login]
	if !ok {
		return
	}
	delete(s.authorized, u.ID)
	for cred, t := range s.tokens {
		if t.signIn && t.user.ID == u.ID {
			delete(s.tokens, cred)
		}
	}
}

// serveUserToken exchanges a code for a token of the person. Refusals have the status 200, as on GitHub.
func (s *Sim) serveUserToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "Bad Request", http.StatusBadRequest)
		return
	}
	f := s.admit(r, "POST /login/oauth/access_token", r.URL.Path)
	if f.before(w, r) {
		return
	}
	answer := s.userToken(r.PostForm)
	if f.after(w, r) {
		return
	}
	identify(w.Header())
	if !strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		q := url.Values{}
		for k, v := range answer {
			text, _ := json.Marshal(v) // strings and numbers only
			q.Set(k, strings.Trim(string(text), `"`))
		}
		_, _ = w.Write([]byte(q.Encode())) // the client has disconnected
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	body, _ := json.Marshal(answer)
	_, _ = w.Write(body)
}

func (s *Sim) userToken(form url.Values) obj {
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(name, text string) obj {
		return obj{"error": name, "error_description": text, "error_uri": "https://docs.github.com/apps"}
	}
	if form.Get("client_id") != s.app.ClientID || form.Get("client_secret") != s.app.ClientSecret {
		return refuse("incorrect_client_credentials", "The client_id and/or client_secret passed are incorrect.")
	}
	code, known := s.userCodes[form.Get("code")]
	delete(s.userCodes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	switch {
	case !known || !s.cfg.AuthNow().Before(code.expires),
		code.challenge != "" && code.challenge != base64.RawURLEncoding.EncodeToString(sum[:]):
		return refuse("bad_verification_code", "The code passed is incorrect or expired.")
	case form.Has("redirect_uri") && form.Get("redirect_uri") != code.redirect:
		return refuse("redirect_uri_mismatch", "The redirect_uri MUST match the registered callback URL for this application.")
	}
	cred := "ghu_" + randomHex(18)
	s.tokens[cred] = &token{user: code.user, signIn: true, expires: s.cfg.AuthNow().Add(userTokenLife)}
	return obj{
		"access_token": cred, "expires_in": int(userTokenLife / time.Second), "refresh_token": "ghr_" + randomHex(38),
		"refresh_token_expires_in": 15811200, "scope": "", "token_type": "bearer",
	}
}

// onlySignedIn returns an error unless the request has the token of a person who authorized the App.
func onlySignedIn(h handler) handler {
	return func(c *call) (any, error) {
		if c.by == nil {
			return nil, errNeedAuth()
		}
		if !c.signedIn {
			return nil, errForbidden("You must authenticate with an access token authorized to a GitHub App in order to list installations")
		}
		return h(c)
	}
}

// shares returns the repositories of an installation to which the person has access explicitly, not only because they are public.
func (c *call) shares(in *Installation) (list []*Repo) {
	for _, id := range in.RepoIDs {
		if r, ok := c.s.find.repo(id); ok && slices.Contains(r.Explicit(), c.by.Login) && c.sees(r) {
			list = append(list, r)
		}
	}
	return list
}

func userInstallations(c *call) (any, error) {
	var list []*Installation
	for _, in := range c.s.installs {
		if in.Account == c.by.Login || len(c.shares(in)) > 0 {
			list = append(list, in)
		}
	}
	return obj{"total_count": len(list), "installations": each(page(c, list), c.s.json.installation)}, nil
}

func userInstallationRepos(c *call) (any, error) {
	in, err := c.theInstallation()
	if err != nil {
		return nil, err
	}
	list := c.shares(in)
	if in.Suspended {
		return nil, errForbidden("This installation has been suspended")
	}
	if in.Account != c.by.Login && len(list) == 0 {
		return nil, errNotFound()
	}
	return obj{
		"total_count": len(list), "repository_selection": "selected", "repositories": each(page(c, list), c.listedRepoJSON),
	}, nil
}
