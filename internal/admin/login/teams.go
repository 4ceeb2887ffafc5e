package login

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state"
)

const (
	// memberFor is how long GitHub's answer is used that a person is in a team. It is asked again with the next question about the person,
	// at most freshFor later. That somebody is in none is asked once in a session.
	memberFor = 4 * time.Minute
	teamsTime = 10 * time.Second // timeout for asking about all teams
	// Everybody on GitHub can sign in with a public App, and these questions use up the hourly limit with which errand works: strangers
	// get at most a part of it.
	strangerEvery = 2 * time.Second
	strangerBurst = 200
)

// membership is GitHub's last answer about the teams of a person, in one session.
type membership struct {
	active bool
	read   time.Time // zero before the first answer
}

// isRecent reports whether the answer can be used.
func (m membership) isRecent(now time.Time) bool {
	return !m.read.IsZero() && (!m.active || now.Sub(m.read) < memberFor)
}

// teams are the teams whose members are operators. A team belongs to its organization, whose login can be given up and taken by a stranger
// like that of an account, so the ID that was first seen is kept for it, too.
type teams struct {
	github    *GitHub
	now       func() time.Time
	strangers *rate.Limiter
	complaint rate.Sometimes // limits the log
}

func newTeams(cfg Config) *teams {
	return &teams{
		github: cfg.GitHub, now: cfg.Now, strangers: rate.NewLimiter(rate.Every(strangerEvery), strangerBurst),
		complaint: rate.Sometimes{First: 1, Interval: time.Minute},
	}
}

// doubt is why it is unknown whether a person is in a team. Everybody may read the reason, which names no team.
type doubt struct {
	reason string
	err    error // for the log
}

// includesByTeam reports whether a person is an operator as a member of a team. While GitHub cannot be asked, the answer is no, and reason says why.
func (o *operators) includesByTeam(ctx context.Context, last *membership, who state.Person) (member bool, reason string) {
	t := o.teams
	now := t.now()
	if len(t.github.Teams) == 0 || last.isRecent(now) {
		return last.active, ""
	}
	if !last.active && !t.strangers.AllowN(now, len(t.github.Teams)) {
		return false, "Too many people are signing in at this moment."
	}
	ctx, cancel := context.WithTimeout(ctx, teamsTime)
	defer cancel()
	var first *doubt
	for _, team := range t.github.Teams {
		in, d := o.isMember(ctx, team, who)
		if in {
			*last = membership{active: true, read: now}
			return true, ""
		}
		first = cmp.Or(first, d)
	}
	if first == nil {
		*last = membership{read: now}
		return false, ""
	}
	t.complaint.Do(func() {
		o.log.Warn().Err(first.err).Str("person", who.Login).Msg("failed to find out whether a person is in a team of operators")
	})
	return false, first.reason
}

// isMember reports whether a person is an active member of a team, if the organization is the one that first had this login.
func (o *operators) isMember(ctx context.Context, t config.Team, who state.Person) (bool, *doubt) {
	in, organization, err := o.teams.github.IsMember(ctx, t, who)
	if err != nil {
		return false, &doubt{o.teams.github.Reason(err), err}
	}
	if organization <= 0 {
		return false, &doubt{"GitHub did not name the team's organization.", fmt.Errorf("the organization of %s has no ID", t)}
	}
	id := t.OrganizationID
	if id == 0 {
		if id, err = o.seen(ctx, strings.ToLower(t.Organization), organization); err != nil {
			return false, &doubt{"errand's store failed.", err}
		}
	}
	if id != organization {
		return false, &doubt{"Another organization has the login of the team's organization.", fmt.Errorf(
			"%s is a team of another organization (ID %d) than before (ID %d); if it is the right one, write ORG:ID/TEAM in admin.operators", t, organization, id)}
	}
	return in, nil
}
