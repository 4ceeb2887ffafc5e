package login

import (
	"net/http"

	"github.com/errand-bot/errand/state"
)

// Viewer is the one who sent a request, and what they may see and do.
type Viewer struct{ c caller }

// ViewerOf returns the viewer of a request that a [Guard] has admitted. Of any other request it may see nothing.
func ViewerOf(r *http.Request) Viewer {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return Viewer{c}
}

// Operator reports whether the viewer may see and do everything.
func (v Viewer) Operator() bool { return v.c.operator }

// Person returns the person who has signed in with GitHub; false for somebody with the admin token.
func (v Viewer) Person() (state.Person, bool) {
	if v.c.access == nil {
		return state.Person{}, false
	}
	return v.c.access.person, true
}

// MayRead reports whether the viewer may see the tasks of a repository.
func (v Viewer) MayRead(repo int64) bool {
	return v.c.operator || v.permission(repo) != "" && v.permission(repo) != state.PermissionNone
}

// MayWrite reports whether the viewer has write access to a repository, as far as it is known: GitHub is asked again before
// something is done.
func (v Viewer) MayWrite(repo int64) bool {
	p := v.permission(repo)
	return v.c.operator || p.CanWrite()
}

// Doubt returns why GitHub could not be asked whether the viewer is in a team of operators; empty if it could.
func (v Viewer) Doubt() string {
	if v.c.access == nil {
		return ""
	}
	return v.c.access.doubt
}

// Complete reports whether all repositories of the viewer are known.
func (v Viewer) Complete() bool { return v.c.access == nil || v.c.access.complete }

func (v Viewer) permission(repo int64) state.Permission {
	if v.c.access == nil {
		return ""
	}
	return v.c.access.repos[repo]
}

// Again returns the viewer as of now, for a response that takes long, and false if the session has ended or GitHub cannot be asked.
func Again(r *http.Request) (Viewer, bool) {
	c, _ := r.Context().Value(callerKey{}).(caller)
	if c.again == nil {
		return Viewer{c}, c.operator
	}
	now, ok := c.again()
	return Viewer{now}, ok
}
