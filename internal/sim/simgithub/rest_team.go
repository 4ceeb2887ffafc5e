package simgithub

import (
	"fmt"
	"strings"
	"time"
)

// The states of a membership in a team.
const (
	MemberActive  = "active"
	MemberPending = "pending" // was invited to the organization, and has not accepted
)

// team is a team of an organization. The members of its child teams are its members, too.
type team struct {
	id      int64
	org     *User
	slug    string
	parent  *team            // nil for none
	members map[int64]string // MemberActive or MemberPending, by the ID of the account
	created time.Time
}

// AddTeam creates a team in an organization, below the team with the slug parent unless that is empty.
func (s *Sim) AddTeam(org, slug, parent string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.account(org)
	above, known := s.team(org, parent)
	switch _, taken := s.team(org, slug); {
	case o == nil || o.Type != TypeOrg, parent != "" && !known:
		return errNotFound()
	case taken:
		return errInvalid("Team", "name", "already_exists")
	}
	s.teams = append(s.teams, &team{id: s.newID(), org: o, slug: slug, parent: above, members: map[int64]string{}, created: s.now()})
	return nil
}

// SetTeamMember gives a person the membership MemberActive or MemberPending in a team; an empty state removes them.
func (s *Sim) SetTeamMember(org, slug, login, state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.team(org, slug)
	u := s.account(login)
	switch {
	case !ok || u == nil:
		return errNotFound()
	case state == "":
		delete(t.members, u.ID)
	case state != MemberActive && state != MemberPending || u.Type != TypeUser:
		return fmt.Errorf("set the membership of %s: %q is no state of a person", login, state)
	default:
		t.members[u.ID] = state
	}
	return nil
}

// account returns an account by its login in any case, or nil.
func (s *Sim) account(login string) *User {
	for _, u := range s.users {
		if strings.EqualFold(u.Login, login) {
			return u
		}
	}
	return nil
}

func (s *Sim) team(org, slug string) (*team, bool) {
	for _, t := range s.teams {
		if strings.EqualFold(t.org.Login, org) && strings.EqualFold(t.slug, slug) {
			return t, true
		}
	}
	return nil, false
}

// membership returns the state of a person's membership in a team or, unless there is one, in its child teams; empty for none.
func (s *Sim) membership(t *team, person int64) string {
	best := t.members[person]
	for _, child := range s.teams {
		if child.parent == t && best != MemberActive {
			if state := s.membership(child, person); state != "" {
				best = state
			}
		}
	}
	return best
}

func teamRoutes() []route {
	return []route{
		{"GET", "/orgs/{org}/teams/{slug}", getTeam},
		{"GET", "/orgs/{org}/teams/{slug}/memberships/{login}", getMembership},
	}
}

// theTeam returns the team in the path. Installations need members: read in its organization, and people see the teams of their own
// organizations only.
func (c *call) theTeam() (*team, error) {
	t, ok := c.s.team(c.vars["org"], c.vars["slug"])
	switch {
	case c.viaApp():
		in := c.tok.install
		if !strings.EqualFold(in.Account, c.vars["org"]) || levelRank(c.tok.perms["members"]) == 0 || levelRank(in.Permissions["members"]) == 0 {
			return nil, errIntegration()
		}
	case c.by == nil:
		return nil, errNeedAuth()
	default:
		ok = ok && c.s.belongs(t.org, c.by.ID)
	}
	if !ok {
		return nil, errNotFound()
	}
	return t, nil
}

// belongs reports whether a person is an active member of any team of an organization.
func (s *Sim) belongs(org *User, person int64) bool {
	for _, t := range s.teams {
		if t.org == org && t.members[person] == MemberActive {
			return true
		}
	}
	return false
}

func getTeam(c *call) (any, error) {
	t, err := c.theTeam()
	if err != nil {
		return nil, err
	}
	return c.s.json.fullTeam(t), nil
}

func getMembership(c *call) (any, error) {
	t, err := c.theTeam()
	if err != nil {
		return nil, err
	}
	u := c.s.account(c.vars["login"])
	if u == nil {
		return nil, errNotFound()
	}
	state := c.s.membership(t, u.ID)
	if state == "" {
		return nil, errNotFound()
	}
	return obj{"state": state, "role": "member", "url": c.s.json.teamURL(t) + "/memberships/" + u.Login}, nil
}

func (j encoder) teamURL(t *team) string { return j.api("/organizations/%d/team/%d", t.org.ID, t.id) }

// team encodes a team as the parent of another one.
func (j encoder) team(t *team) obj {
	api := j.teamURL(t)
	return obj{
		"id": t.id, "node_id": nodeID("T", t.id), "url": api, "html_url": j.html("/orgs/%s/teams/%s", t.org.Login, t.slug), "name": t.slug,
		"slug": t.slug, "description": nil, "privacy": "closed", "notification_setting": "notifications_enabled", "permission": "pull",
		"members_url": api + "/members{/member}", "repositories_url": api + "/repos", "type": "organization", "organization_id": t.org.ID,
	}
}

func (j encoder) fullTeam(t *team) obj {
	o := j.team(t)
	o["parent"] = nil
	if t.parent != nil {
		o["parent"] = j.team(t.parent)
	}
	active := 0
	for _, u := range j.s.users {
		if j.s.membership(t, u.ID) == MemberActive {
			active++
		}
	}
	o["members_count"], o["repos_count"] = active, 0
	o["created_at"], o["updated_at"] = stamp(t.created), stamp(t.created)
	org := j.org(t.org)
	for _, k := range []string{"public_repos", "public_gists", "followers", "following"} {
		org[k] = 0
	}
	org["html_url"], org["type"] = j.html("/%s", t.org.Login), TypeOrg
	org["has_organization_projects"], org["has_repository_projects"], org["archived_at"] = true, true, nil
	org["created_at"], org["updated_at"] = stamp(t.org.CreatedAt), stamp(t.org.CreatedAt)
	o["organization"] = org
	return o
}
