package web

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// postNewApp serves the page on which a manifest is confirmed, and its form. The manifest is posted by another site, so the first
// request has no token against forgery: it changes nothing.
func (w *site) postNewApp(v *visit) error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return &simgithub.Error{Status: http.StatusBadRequest, Message: "The form could not be read"}
	}
	if v.r.PostForm.Get("act") != "" {
		return v.do(w.newAppPage, map[string]act{"create": actCreateApp})
	}
	return w.newAppPage(v)
}

// newAppPage serves the page on which a manifest is confirmed.
func (w *site) newAppPage(v *visit) error {
	if v.p.Login() == "" {
		return forbidden("Choose an account")
	}
	if org := v.r.PathValue("org"); org != "" {
		if u, ok := w.s.User(org); !ok || u.Type != simgithub.TypeOrg {
			return notFound()
		}
	}
	text := v.r.PostForm.Get("manifest")
	m, err := w.s.ReadManifest(text)
	if err != nil {
		return err
	}
	to, err := url.Parse(m.RedirectURL)
	if err != nil {
		return err
	}
	v.leads = to.Scheme + "://" + to.Host
	type row struct{ Name, Level string }
	var rows []row
	for _, name := range slices.Sorted(maps.Keys(m.DefaultPermissions)) {
		rows = append(rows, row{name, m.DefaultPermissions[name]})
	}
	name := m.Name
	if typed := v.r.PostForm.Get("name"); typed != "" {
		name = typed
	}
	return v.render("new-app", "Create GitHub App", struct {
		Manifest    simgithub.Manifest
		Text, State string
		Name, Owner string
		Permissions []row
	}{m, text, v.state(), name, v.owner(), rows})
}

// state returns the state of the site that posted the manifest, which is in the address at first and in the form later.
func (v *visit) state() string {
	if s := v.r.PostForm.Get("state"); s != "" {
		return s
	}
	return v.r.URL.Query().Get("state")
}

// owner returns the account that will own a new App.
func (v *visit) owner() string {
	if org := v.r.PathValue("org"); org != "" {
		return org
	}
	return v.p.Login()
}

// actCreateApp creates the App and sends the browser back with its code.
func actCreateApp(v *visit) (string, error) {
	m, err := v.web.s.ReadManifest(v.r.PostForm.Get("manifest"))
	if err != nil {
		return "", err
	}
	if name := v.field("name"); name != "" {
		m.Name = name
	}
	code, err := v.web.s.CreateApp(v.owner(), m)
	if err != nil {
		return "", err
	}
	to, err := url.Parse(m.RedirectURL)
	if err != nil {
		return "", err
	}
	q := to.Query()
	q.Set("code", code)
	if s := v.state(); s != "" {
		q.Set("state", s)
	}
	to.RawQuery = q.Encode()
	return to.String(), nil
}

// installPage serves the page on which the visitor chooses repositories for the App.
func (w *site) installPage(v *visit) error {
	if v.r.PathValue("slug") != w.s.App().Slug {
		return notFound()
	}
	var repos []string
	for _, r := range v.p.Repos() {
		if r.RoleOf(v.p.Login()) == simgithub.RoleAdmin || r.Owner == v.p.Login() {
			repos = append(repos, r.FullName())
		}
	}
	return v.render("install-app", "Install "+w.s.App().Name, repos)
}

// actInstall installs the App on the chosen repositories.
func actInstall(v *visit) (string, error) {
	repos := v.r.PostForm["repo"]
	if len(repos) == 0 {
		return "", unprocessable("Choose a repository")
	}
	for _, full := range repos {
		if v.p.Role(full) != simgithub.RoleAdmin {
			return "", notFound()
		}
	}
	for _, full := range repos {
		if _, err := v.web.s.Install(full); err != nil {
			return "", err
		}
	}
	return "", nil
}

// authorization returns the request of the page on which the visitor authorizes the App: from the address or from the page's form.
func (v *visit) authorization() simgithub.AuthorizeRequest {
	q := v.r.URL.Query()
	if v.r.Method == http.MethodPost {
		q = v.r.PostForm
	}
	return simgithub.AuthorizeRequest{
		ClientID: q.Get("client_id"), RedirectURI: q.Get("redirect_uri"), State: q.Get("state"),
		CodeChallenge: q.Get("code_challenge"), Method: q.Get("code_challenge_method"),
	}
}

// authorizePage serves the page on which the visitor authorizes the App. Who did so before is sent on at once.
func (w *site) authorizePage(v *visit) error {
	if v.p.Login() == "" {
		return forbidden("Choose an account")
	}
	req := v.authorization()
	if err := w.s.CheckAuthorization(req); err != nil {
		return err
	}
	if v.p.HasAuthorized() && v.alert == "" {
		to, err := v.p.Authorize(req)
		if err == nil {
			http.Redirect(v.w, v.r, to, http.StatusFound)
		}
		return err
	}
	to, err := url.Parse(req.RedirectURI)
	if err != nil {
		return err
	}
	v.leads = to.Scheme + "://" + to.Host
	return v.render("authorize", "Authorize "+w.s.App().Name, req)
}

func actAuthorize(v *visit) (string, error) { return v.p.Authorize(v.authorization()) }

func actDeny(v *visit) (string, error) { return v.p.Deny(v.authorization()) }
