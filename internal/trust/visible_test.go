package trust

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

// The people of these tests. Only ann and bea have write access.
func ann() state.Person                { return state.Person{ID: 1, Login: "ann"} }
func bea() state.Person                { return state.Person{ID: 2, Login: "bea"} }
func personWithoutWrite() state.Person { return state.Person{ID: 3, Login: "out"} }
func reader() state.Person             { return state.Person{ID: 4, Login: "reader"} }
func robot() state.Person              { return state.Person{ID: 5, Login: "helper[bot]", Bot: true} }
func self() state.Person               { return state.Person{ID: 6, Login: "errand[bot]", Bot: true} }

// register returns permissions by ID from a table and counts lookups.
type register struct {
	asked map[int64]int
	fails error
}

func (r *register) Permission(_ context.Context, who state.Person) (state.Permission, error) {
	if r.asked == nil {
		r.asked = map[int64]int{}
	}
	r.asked[who.ID]++
	switch who.ID {
	case 1:
		return state.PermissionAdmin, r.fails
	case 2:
		return state.PermissionWrite, r.fails
	case 4:
		return state.PermissionRead, r.fails
	}
	return state.PermissionNone, r.fails
}

func at(second int) time.Time { return time.Date(2026, 11, 21, 12, 0, second, 0, time.UTC) }

func said(by state.Person, changes ...func(*Comment)) Comment {
	c := Comment{ID: 10, Node: "C_10", Author: by, Body: "words", CreatedAt: at(10)}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func edited(by state.Person, second int) func(*Comment) {
	return func(c *Comment) { c.Editor, c.EditedAt = &by, at(second) }
}

func liked(by state.Person, second int) func(*Comment) {
	return func(c *Comment) { c.ThumbsUp = append(c.ThumbsUp, Reaction{By: by, At: at(second)}) }
}

// decideCase is a comment and the decision about it.
type decideCase struct {
	comment Comment
	policy  func(*Policy)
	reason  string // "" means visible
	voucher string
	silent  bool // neither visible nor withheld
}

func decideCases() map[string]decideCase {
	return map[string]decideCase{
		"a writer":                         {comment: said(bea())},
		"an admin":                         {comment: said(ann())},
		"a user without write access":      {comment: said(personWithoutWrite()), reason: ReasonOutsider},
		"a reader":                         {comment: said(reader()), reason: ReasonOutsider},
		"a deleted account":                {comment: said(state.Person{}), reason: ReasonOutsider},
		"somebody on the list":             {comment: said(personWithoutWrite()), policy: func(p *Policy) { p.Allowed = []string{"OUT"} }},
		"a writer's own edit":              {comment: said(bea(), edited(bea(), 20))},
		"another writer's edit":            {comment: said(bea(), edited(ann(), 20))},
		"an edit without write access":     {comment: said(bea(), edited(personWithoutWrite(), 20)), reason: ReasonEditor},
		"an edit by an unknown editor":     {comment: said(bea(), edited(state.Person{}, 20)), reason: ReasonEditor},
		"a bot's edit":                     {comment: said(bea(), edited(robot(), 20)), reason: ReasonEditor},
		"a listed bot's edit":              {comment: said(bea(), edited(robot(), 20)), policy: func(p *Policy) { p.Bots = []string{"helper"} }},
		"a foreign edit, then a 👍":         {comment: said(bea(), edited(personWithoutWrite(), 20), liked(ann(), 21)), voucher: "ann"},
		"without write access, with a 👍":   {comment: said(personWithoutWrite(), liked(bea(), 11)), voucher: "bea"},
		"a 👍 in the same second":           {comment: said(personWithoutWrite(), liked(bea(), 10)), reason: ReasonEditedAfter},
		"a 👍 without write access":         {comment: said(personWithoutWrite(), liked(reader(), 11)), reason: ReasonOutsider},
		"a 👍 by the author":                {comment: said(personWithoutWrite(), liked(personWithoutWrite(), 11)), reason: ReasonOutsider},
		"a 👍 by a bot":                     {comment: said(personWithoutWrite(), liked(robot(), 11)), policy: func(p *Policy) { p.Bots = []string{"helper[bot]"} }, reason: ReasonOutsider},
		"a 👍 by somebody on the list":      {comment: said(personWithoutWrite(), liked(reader(), 11)), policy: func(p *Policy) { p.Allowed = []string{"reader"} }, voucher: "reader"},
		"edited after the 👍":               {comment: said(personWithoutWrite(), liked(bea(), 11), edited(personWithoutWrite(), 20)), reason: ReasonEditedAfter},
		"edited in the second of the 👍":    {comment: said(personWithoutWrite(), liked(bea(), 20), edited(personWithoutWrite(), 20)), reason: ReasonEditedAfter},
		"edited, then another 👍":           {comment: said(personWithoutWrite(), liked(bea(), 11), edited(personWithoutWrite(), 20), liked(ann(), 30)), voucher: "ann"},
		"edited by a writer, but no 👍":     {comment: said(personWithoutWrite(), edited(ann(), 20)), reason: ReasonOutsider},
		"a bot":                            {comment: said(robot()), reason: ReasonBot},
		"a bot with a 👍":                   {comment: said(robot(), liked(ann(), 11)), reason: ReasonBot},
		"a bot on the list of people":      {comment: said(robot()), policy: func(p *Policy) { p.Allowed = []string{"helper[bot]"} }, reason: ReasonBot},
		"a listed bot":                     {comment: said(robot()), policy: func(p *Policy) { p.Bots = []string{"Helper[bot]"} }},
		"a listed bot, by its short name":  {comment: said(robot()), policy: func(p *Policy) { p.Bots = []string{"helper"} }},
		"a person named like a listed bot": {comment: said(personWithoutWrite()), policy: func(p *Policy) { p.Bots = []string{"out"} }, reason: ReasonOutsider},
		"the bot itself":                   {comment: said(self()), silent: true},
		"the bot itself, listed":           {comment: said(self()), policy: func(p *Policy) { p.Bots = []string{"errand"} }, silent: true},
		"only hidden content":              {comment: said(bea(), func(c *Comment) { c.Body = "<!-- x -->" }), silent: true},
		"no lookups left":                  {comment: said(personWithoutWrite(), liked(reader(), 11), liked(bea(), 12)), policy: func(p *Policy) { p.MaxLookups = 2 }, reason: ReasonTooMany},
		"enough lookups left":              {comment: said(personWithoutWrite(), liked(reader(), 11), liked(bea(), 12)), policy: func(p *Policy) { p.MaxLookups = 3 }, voucher: "bea"},
	}
}

func TestDecideComment(t *testing.T) {
	t.Parallel()
	for name, tc := range decideCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := Policy{Self: self().ID}
			if tc.policy != nil {
				tc.policy(&policy)
			}
			issue := Issue{Title: "T", Comment: Comment{Author: robot(), Body: "B", CreatedAt: at(1)}}
			view, err := Decide(t.Context(), issue, []Comment{tc.comment}, &register{}, policy)
			if err != nil {
				t.Fatal(err)
			}
			var reasons, vouchers []string
			for _, w := range view.Withheld {
				if w.ID == tc.comment.ID {
					reasons = append(reasons, w.Reason)
					if w.Release == "" || w.Node != tc.comment.Node || w.By != tc.comment.Author {
						t.Errorf("withheld: %+v", w)
					}
				}
			}
			for _, c := range view.Comments {
				vouchers = append(vouchers, c.VouchedBy.Login)
			}
			var wantReasons, wantVouchers []string
			switch {
			case tc.reason != "":
				wantReasons = []string{tc.reason}
			case !tc.silent:
				wantVouchers = []string{tc.voucher}
			}
			if diff := cmp.Diff(wantReasons, reasons) + cmp.Diff(wantVouchers, vouchers); diff != "" {
				t.Errorf("reasons and vouchers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideIssue(t *testing.T) {
	t.Parallel()
	listBot := func(p *Policy) { p.Bots = []string{"helper"} }
	tests := map[string]struct {
		issue  Issue
		policy func(*Policy)
		shows  bool
	}{
		"by a user without write access":       {issue: Issue{Comment: said(personWithoutWrite())}},
		"vouched for by a writer":              {issue: Issue{Comment: said(personWithoutWrite()), VouchedBy: bea()}, shows: true},
		"vouched for by the operator":          {issue: Issue{Comment: said(personWithoutWrite()), VouchedBy: state.Person{Operator: true}}, shows: true},
		"a bot's, vouched for by the operator": {issue: Issue{Comment: said(robot()), VouchedBy: state.Person{Operator: true}}, shows: true},
		"vouched for on errand's pages":        {issue: Issue{Comment: said(personWithoutWrite()), VouchedBy: state.Person{ID: 4, Login: "reader", Operator: true}}},
		"vouched for by nobody":                {issue: Issue{Comment: said(personWithoutWrite()), VouchedBy: state.Person{}}},
		"vouched for by a reader":              {issue: Issue{Comment: said(personWithoutWrite()), VouchedBy: reader()}},
		"vouched for by a listed bot":          {issue: Issue{Comment: said(personWithoutWrite()), VouchedBy: robot()}, policy: listBot},
		"a bot's, vouched for by a writer":     {issue: Issue{Comment: said(robot()), VouchedBy: ann()}, shows: true},
		"a listed bot's own":                   {issue: Issue{Comment: said(robot()), VouchedBy: robot()}, policy: listBot, shows: true},
		"a writer's, without a trigger":        {issue: Issue{Comment: said(ann())}, shows: true},
		"edited without write access, vouched": {issue: Issue{Comment: said(ann(), edited(personWithoutWrite(), 20)), VouchedBy: bea()}, shows: true},
		"edited without write access":          {issue: Issue{Comment: said(ann(), edited(personWithoutWrite(), 20))}},
		"with a 👍":                             {issue: Issue{Comment: said(personWithoutWrite(), liked(ann(), 11))}, shows: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.issue.Title, tc.issue.ID = "Title\u200b", 0
			var policy Policy
			if tc.policy != nil {
				tc.policy(&policy)
			}
			view, err := Decide(t.Context(), tc.issue, nil, &register{}, policy)
			if err != nil {
				t.Fatal(err)
			}
			if view.ShowsIssue != tc.shows || view.Empty() == tc.shows || (len(view.Withheld) == 0) != tc.shows {
				t.Fatalf("view %+v, want visible %t", view, tc.shows)
			}
			if tc.shows && (view.Title != "Title" || view.Body != "words") || !tc.shows && view.Title+view.Body != "" {
				t.Errorf("title %q, body %q", view.Title, view.Body)
			}
		})
	}
}

func TestDecideCleansAndOrders(t *testing.T) {
	t.Parallel()
	late := said(ann(), func(c *Comment) { c.ID, c.CreatedAt, c.Body = 12, at(30), "late <!-- hidden -->" })
	early := said(bea(), func(c *Comment) { c.ID, c.CreatedAt, c.Body = 11, at(5), "early "+fakeToken() })
	issue := Issue{Title: "T", Comment: said(ann(), func(c *Comment) { c.Body = "B<!-- " + knownSecret + " -->" })}
	view, err := Decide(t.Context(), issue, []Comment{late, early}, &register{}, Policy{Redactor: redactor(t)})
	if err != nil {
		t.Fatal(err)
	}
	want := View{
		ShowsIssue: true, Title: "T", Body: "B",
		Comments: []Visible{
			{ID: 11, Node: "C_10", Author: bea(), At: at(5), Body: "early [redacted: github-token]"},
			{ID: 12, Node: "C_10", Author: ann(), At: at(30), Body: "late"},
		},
		Stripped: []Stripped{{KindComment, 2, "<!-- [redacted: known-value] -->"}, {KindSecret, 1, ""}},
	}
	if diff := cmp.Diff(want, view); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecideLimitsPermissionLookups(t *testing.T) {
	t.Parallel()
	reg := &register{}
	crowd := said(personWithoutWrite())
	for i := range 500 {
		liked(state.Person{ID: int64(1000 + i), Login: "x"}, 11)(&crowd)
	}
	liked(ann(), 12)(&crowd)
	issue := Issue{Comment: said(ann()), VouchedBy: ann()}
	view, err := Decide(t.Context(), issue, []Comment{crowd, crowd}, reg, Policy{MaxLookups: 5})
	if err != nil {
		t.Fatal(err)
	}
	if len(view.Comments) != 2 || view.Comments[0].VouchedBy != ann() {
		t.Errorf("a known writer's 👍 was lost in the crowd: %+v", view)
	}
	if len(reg.asked) > 5 || reg.asked[1] != 1 {
		t.Errorf("asked %v", reg.asked)
	}
}

func TestDecideFailsClosed(t *testing.T) {
	t.Parallel()
	down := errors.New("GitHub is down")
	for name, issue := range map[string]Issue{
		"voucher": {Comment: said(personWithoutWrite()), VouchedBy: ann()},
		"author":  {Comment: said(ann())},
		"editor":  {Comment: said(state.Person{}, liked(bea(), 20))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			view, err := Decide(t.Context(), issue, nil, &register{fails: down}, Policy{})
			if !errors.Is(err, down) || !strings.HasPrefix(err.Error(), "read the permission of ") || !view.Empty() {
				t.Errorf("view %+v, error %v", view, err)
			}
		})
	}
}
