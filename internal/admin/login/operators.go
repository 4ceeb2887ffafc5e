package login

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/state"
)

// factOperators names the IDs of the accounts of operators and of the organizations of their teams: a JSON object from a login in lower
// case to the ID on GitHub.
const factOperators = "admin_operators"

// operators are the GitHub accounts that see and do everything. A login can be given up and taken by a stranger, so the ID of the
// account that first signed in with it is kept, and another account with this login is no operator.
type operators struct {
	listed map[string]int64 // by login in lower case; 0 if the configuration does not name the ID
	teams  *teams
	facts  Facts
	log    zerolog.Logger
	mu     sync.Mutex // held while the IDs are read and written
}

// newOperators reads the lists of operators. Of the configuration it needs GitHub, Now and Log.
func newOperators(cfg Config, facts Facts) (*operators, error) {
	o := &operators{listed: map[string]int64{}, teams: newTeams(cfg), facts: facts, log: cfg.Log}
	for _, entry := range cfg.GitHub.Operators {
		login, number, named := strings.Cut(strings.ToLower(entry), ":")
		id, err := strconv.ParseInt(cmp.Or(number, "0"), 10, 64)
		if err != nil || login == "" || named && id <= 0 {
			return nil, fmt.Errorf("%q is no operator: write LOGIN or LOGIN:ID", entry)
		}
		o.listed[login] = id
	}
	return o, nil
}

// includes reports whether a person is an operator. The first account that signs in with a listed login is kept as its owner.
func (o *operators) includes(ctx context.Context, p state.Person) (bool, error) {
	for _, id := range o.listed {
		if id == p.ID {
			return true, nil // also after a change of the login
		}
	}
	login := strings.ToLower(p.Login)
	id, listed := o.listed[login]
	if !listed {
		return false, nil
	}
	if id == 0 {
		var err error
		if id, err = o.seen(ctx, login, p.ID); err != nil {
			return false, err
		}
	}
	if id != p.ID {
		o.log.Warn().Str("login", p.Login).Int64("id", p.ID).Int64("operator_id", id).
			Msg("another account has the login of an operator; if it is the right one, write LOGIN:ID in admin.operators")
	}
	return id == p.ID, nil
}

// seen returns the ID of the account that first signed in with an operator's login, or of the organization that first had the login of
// a team's one: this one, if there was none.
func (o *operators) seen(ctx context.Context, login string, id int64) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := map[string]int64{}
	text, err := o.facts.Fact(ctx, factOperators)
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &ids)
	}
	if err != nil {
		return 0, fmt.Errorf("read the accounts of operators: %w", err)
	}
	if known := ids[login]; known != 0 {
		return known, nil
	}
	ids[login] = id
	if text, err = json.Marshal(ids); err == nil {
		err = o.facts.SetFact(ctx, factOperators, text)
	}
	if err != nil {
		return 0, fmt.Errorf("store the account of an operator: %w", err)
	}
	return id, nil
}
