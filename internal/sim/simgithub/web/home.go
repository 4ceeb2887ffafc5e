package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
)

// homePage serves the list of the repositories that the person may see.
func (w *site) homePage(v *visit) error {
	type row struct {
		Full          string
		Private       bool
		Role          simgithub.Role
		Issues, Pulls int // numbers of open ones
	}
	var rows []row
	for _, r := range v.p.Repos() {
		one := row{Full: r.FullName(), Private: r.Private, Role: r.RoleOf(v.p.Login())}
		for _, i := range r.Issues {
			switch {
			case i.State != "open":
			case i.Pull != nil:
				one.Pulls++
			default:
				one.Issues++
			}
		}
		rows = append(rows, one)
	}
	return v.render("home", "Repositories", rows)
}

// actAs changes the account as which the visitor acts.
func actAs(v *visit) (string, error) {
	login := v.field("login")
	if !slices.Contains(v.web.people(), login) {
		return "", notFound()
	}
	http.SetCookie(v.w, &http.Cookie{
		Name: cookieAs, Value: url.QueryEscape(login), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	if v.field("back") == "" {
		return "/", nil
	}
	return "", nil
}

// accountPage serves the roles of an account in the repositories that the visitor may see.
func (w *site) accountPage(v *visit) error {
	login := v.r.PathValue("login")
	u, ok := w.s.User(login)
	if !ok {
		return notFound()
	}
	type row struct {
		Full string
		Role simgithub.Role
	}
	view := struct {
		Login, Type string
		Since       time.Time
		Repos       []row
	}{Login: u.Login, Type: u.Type, Since: u.CreatedAt}
	for _, r := range v.p.Repos() {
		if role := r.RoleOf(login); role.Rank() > simgithub.RoleRead.Rank() || r.Collaborators[login] != "" {
			view.Repos = append(view.Repos, row{r.FullName(), role})
		}
	}
	return v.render("account", login, view)
}

// peoplePage serves all accounts with their roles. The visitor can change them with the owner's permissions.
func (w *site) peoplePage(v *visit) error {
	sn, app := w.s.Snapshot(), w.s.App().BotLogin
	type cell struct {
		Full  string
		Role  simgithub.Role
		Owner bool
	}
	type row struct {
		simgithub.User
		Roles []cell
	}
	var rows []row
	for _, u := range sn.Users {
		if u.Type == simgithub.TypeOrg || u.Login == app {
			continue // they have no roles of their own
		}
		one := row{User: u}
		for _, r := range sn.Repos {
			role, ok := r.Collaborators[u.Login]
			if !ok {
				role = simgithub.RoleNone
			}
			one.Roles = append(one.Roles, cell{r.FullName(), role, u.Login == r.Owner})
		}
		rows = append(rows, one)
	}
	return v.render("people", "People", struct {
		Rows  []row
		Roles []simgithub.Role
	}{rows, []simgithub.Role{
		simgithub.RoleNone, simgithub.RoleRead, simgithub.RoleTriage, simgithub.RoleWrite, simgithub.RoleMaintain, simgithub.RoleAdmin,
	}})
}

func peopleActs() map[string]act {
	return map[string]act{
		"add": func(v *visit) (string, error) {
			login := strings.TrimSpace(v.field("login"))
			if !validLogin(login) {
				return "", unprocessable("A login is 1 to 39 letters, digits and single hyphens, and does not begin or end with one")
			}
			if _, taken := v.web.s.User(login); taken {
				return "", invalid("User", "login", "already_exists")
			}
			v.web.s.AddUser(login)
			return "", nil
		},
		"role": func(v *visit) (string, error) {
			full, login, role := v.field("repo"), v.field("login"), simgithub.Role(v.field("role"))
			owner, _, _ := strings.Cut(full, "/")
			if _, ok := v.web.s.User(owner); !ok {
				return "", notFound()
			}
			if _, ok := v.web.s.User(login); !ok || role != simgithub.RoleNone && role.Rank() == 0 {
				return "", invalid("Collaborator", "permission", "invalid")
			}
			return "", v.web.s.As(owner).SetPermission(full, login, role)
		},
	}
}

// validLogin reports whether GitHub accepts a login.
func validLogin(login string) bool {
	if len(login) == 0 || len(login) > 39 || login[0] == '-' || login[len(login)-1] == '-' || strings.Contains(login, "--") {
		return false
	}
	for _, c := range login {
		if c != '-' && !isWordRune(c) {
			return false
		}
	}
	return true
}

// maxListed is the maximum length of the list of deliveries.
const maxListed = 200

// deliveriesPage serves the list of deliveries to the App, newest first, or one delivery by its id.
func (w *site) deliveriesPage(v *visit) error {
	list := w.s.Deliveries()
	slices.Reverse(list)
	type row struct {
		delivery.Delivery
		Text string
	}
	view := struct {
		URL   string
		Rows  []row
		Total int
		One   bool
	}{URL: w.s.App().WebhookURL, Total: len(list)}
	id := v.r.URL.Query().Get("id")
	for _, d := range list {
		if id != "" && itoa(d.ID) != id {
			continue
		}
		one := row{Delivery: d}
		if view.One = id != ""; view.One {
			one.Text = indented(d.Payload)
		}
		if view.Rows = append(view.Rows, one); len(view.Rows) == maxListed {
			break
		}
	}
	if id != "" && len(view.Rows) == 0 {
		return notFound()
	}
	return v.render("deliveries", "Webhook deliveries", view)
}

func indented(payload []byte) string {
	var v any
	if err := json.Unmarshal(payload, &v); err != nil {
		return string(payload)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(payload)
	}
	return string(b)
}

// actRedeliver sends a delivery again with its GUID.
func actRedeliver(v *visit) (string, error) {
	if !v.web.s.Redeliver(v.number("id")) {
		return "", notFound()
	}
	return "/_sim/deliveries", nil
}

// callsPage serves the numbers of calls of the API.
func (w *site) callsPage(v *visit) error {
	list, total := w.s.Calls()
	return v.render("calls", "API calls", struct {
		List  []simgithub.CallCount
		Total int
	}{list, total})
}
