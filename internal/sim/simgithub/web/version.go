package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// versionPage serves the version of another page, whose script requests it every second.
func (w *site) versionPage(v *visit) error {
	v.headers("text/plain; charset=utf-8")
	path, err := url.PathUnescape(v.r.URL.Query().Get("path"))
	if err != nil {
		return &simgithub.Error{Status: 400, Message: "The path could not be read"}
	}
	_, _ = v.w.Write([]byte(w.version(path, v.p))) // the visitor has disconnected
	return nil
}

// version returns a digest of everything that the page at a path shows to a person. It changes whenever the page would
// change.
func (w *site) version(path string, p simgithub.Person) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 || parts[0] == "_sim" {
		return w.versionOfAll(p)
	}
	full := parts[0] + "/" + parts[1]
	var made any = "nothing"
	if r, err := p.Repo(full); err == nil { // a hidden repository has the version of nothing
		state := []any{p.Login(), r.RoleOf(p.Login()), r.PushedAt, r.CheckRuns, r.Statuses, r.Collaborators}
		if n := numberOf(parts); n > 0 {
			state = append(state, r.Issues[n], w.draftsOf(draftsKey(p.Login(), full, n)))
		} else {
			for _, i := range r.IssuesByNumber() {
				state = append(state, i.Number, i.UpdatedAt, len(i.Comments), i.State)
			}
		}
		made = digest(state)
	}
	return digest(made)
}

// numberOf returns the issue number in a path, or 0.
func numberOf(parts []string) int {
	if len(parts) < 4 || parts[2] != "issues" && parts[2] != "pull" {
		return 0
	}
	n, err := strconv.Atoi(parts[3])
	if err != nil {
		return 0
	}
	return n
}

func (w *site) versionOfAll(p simgithub.Person) string {
	_, calls := w.s.Calls()
	return digest([]any{p.Login(), calls, w.s.LastID(), len(w.s.Users()), len(w.s.Deliveries())})
}

// digest returns a short hash of a value that can be marshaled as JSON.
func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "unknown"
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
