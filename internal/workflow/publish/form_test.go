package publish_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// A branch belongs to this issue if it matches the template for the issue with any slug.
func TestBranchesOfTheIssueAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		title    string
		branch   string
		found    bool
	}{
		"another slug":            {"", "It breaks", "errand/1-somebody-elses", true},
		"another issue":           {"", "It breaks", "errand/12-it-breaks", false},
		"exactly":                 {"branch: feature/{number}\n", "It breaks", "feature/1", true},
		"a longer number":         {"branch: feature/{number}\n", "It breaks", "feature/11", false},
		"by its key":              {"branch: '{key}/{slug}'\nkey: {pattern: '[A-Z]+-[0-9]+'}\n", "ABC-1: it breaks", "ABC-1/mine", true},
		"by another key":          {"branch: '{key}/{slug}'\nkey: {pattern: '[A-Z]+-[0-9]+'}\n", "ABC-1: it breaks", "ABC-12/abc-1-it-breaks", false},
		"without its key":         {"branch: '{key}/{slug}'\nkey: {pattern: '[A-Z]+-[0-9]+'}\n", "It breaks", "else", false},
		"the number after a slug": {"branch: '{slug}-{number}'\n", "It breaks", "mine-1", true},
		"another after a slug":    {"branch: '{slug}-{number}'\n", "It breaks", "it-breaks-21", false},
		"the default branch":      {"branch: '{slug}'\n", "It breaks", "it-breaks-not", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.WriteSettings(c.settings)
			w.Task.Frozen.Title = c.title
			w.Push("bob", c.branch, map[string]string{"a.txt": "b\n"})
			e := w.Do(state.JobStart)
			if found := e.Kind() == event.KindQuestionRaised && event.Of[event.QuestionRaised](e).Question.Kind == state.AskExisting; found != c.found {
				t.Errorf("got event %s, question %+v", e.Kind(), event.Of[event.QuestionRaised](e).Question)
			}
		})
	}
}

// Each commit's first line gets the form of the repository's template and keeps its text; the rest of the message is
// unchanged.
func TestSubjectsAreInForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		template string
		round    int
		messages []string
		want     []string
	}{
		"by default": {"{task}", 0, []string{"Mend it\n\nBadly."}, []string{"Mend it\n\nBadly."}},
		"a key": {"{key} {task}", 0,
			[]string{"Mend it\n\nBadly.", "ABC-1 Mend more", "ABC-12 Mend all\nat once"},
			[]string{"ABC-1 Mend it\n\nBadly.", "ABC-1 Mend more", "ABC-1 ABC-12 Mend all\nat once"}},
		"template without a placeholder for text": {"Work on #{number}", 0, []string{"Mend it\n\nBadly.", "Mend more"}, []string{"Work on #1\n\nMend it\n\nBadly.", "Work on #1\n\nMend more"}},
		"a round":                          {"{key} {task}", 1, []string{"Mend it"}, []string{"ABC-1 Address review feedback — Mend it"}},
		"first line is removed text":       {"{key} {task}", 0, []string{"Co-authored-by: A <a@b>\nMend it, @ada"}, []string{"ABC-1 Mend it, @ ada"}},
		"a template with a mention":        {"{task} for @ada [skip ci]", 0, []string{"Mend it"}, []string{"Mend it for @ ada (skip ci)"}},
		"a template that closes the issue": {"Fixes #{number}: {task}", 0, []string{"Fixes #2"}, []string{"Fixes #1: see #2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			h := w.Building()
			w.Task.Settings.Commit, w.Task.Ticket, w.Task.Round = c.template, "ABC-1", c.round
			for i, m := range c.messages {
				h.Commit(t, m, map[string]string{"a.txt": strings.Repeat("x\n", i+1)})
			}
			e := w.Collected()
			if len(event.Of[event.Collected](e).Refusals) > 0 {
				t.Fatalf("got refusals %+v", event.Of[event.Collected](e).Refusals)
			}
			cs, err := w.Files.LoadChangeset(e.Work().Ref)
			workflowtest.Check(t, err)
			var got []string
			for _, k := range cs.Commits {
				got = append(got, k.Message)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got messages %q, want %q", got, c.want)
			}
			work := w.Committed()
			view, _, err := w.Ada.CommitFiles(workflowtest.RepoName, work.Head)
			workflowtest.Check(t, err)
			if want := c.want[len(c.want)-1]; strings.TrimSpace(view.Message) != want {
				t.Errorf("got published %q, want %q", view.Message, want)
			}
		})
	}
}

// The settings trailers and signoff add lines about the person who approved the plan, and nobody else.
func TestTrailers(t *testing.T) {
	t.Parallel()
	byGrace := func(w *workflowtest.World) *state.Approval {
		return &state.Approval{Kind: state.PlanThorough, By: w.Person("grace"), Via: state.ViaCommand}
	}
	for name, c := range map[string]struct {
		set  settings.Settings
		by   func(*workflowtest.World) *state.Approval
		name string
		want []string
	}{
		"neither":          {settings.Settings{}, byGrace, "Grace", nil},
		"co-author":        {settings.Settings{Trailers: true}, byGrace, "Grace Hopper", []string{"Co-authored-by: Grace Hopper"}},
		"sign-off":         {settings.Settings{SignOff: true}, byGrace, "Grace Hopper", []string{"Signed-off-by: Grace Hopper"}},
		"both":             {settings.Settings{SignOff: true, Trailers: true}, byGrace, "Grace", []string{"Co-authored-by: Grace", "Signed-off-by: Grace"}},
		"no name":          {settings.Settings{SignOff: true}, byGrace, "", []string{"Signed-off-by: grace"}},
		"an unusable name": {settings.Settings{SignOff: true}, byGrace, "<@@>\n", []string{"Signed-off-by: grace"}},
		"no approval":      {settings.Settings{SignOff: true, Trailers: true}, func(*workflowtest.World) *state.Approval { return nil }, "", nil},
		"by the settings": {settings.Settings{SignOff: true, Trailers: true}, func(w *workflowtest.World) *state.Approval {
			return &state.Approval{By: w.Person("grace"), Via: state.ViaSettings}
		}, "", nil},
		"only of the preliminary plan": {settings.Settings{SignOff: true, Trailers: true}, func(w *workflowtest.World) *state.Approval {
			return &state.Approval{Kind: state.PlanPreliminary, By: w.Person("ada"), Via: state.ViaBox}
		}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			h := w.Building()
			workflowtest.Check(t, w.Ada.SetPermission(workflowtest.RepoName, "grace", simgithub.RoleWrite))
			workflowtest.Check(t, w.As("grace").SetName(c.name))
			w.Task.Settings.Trailers, w.Task.Settings.SignOff, w.Task.Approval = c.set.Trailers, c.set.SignOff, c.by(w)
			h.Commit(t, "Mend it\n\nCo-authored-by: Claude <noreply@anthropic.com>", map[string]string{"a.txt": "x\n"})
			cs, err := w.Files.LoadChangeset(w.Collected().Work().Ref)
			workflowtest.Check(t, err)
			want := "Mend it"
			for i, line := range c.want {
				if i == 0 {
					want += "\n"
				}
				want += fmt.Sprintf("\n%s <%d+grace@users.noreply.127.0.0.1>", line, w.Person("grace").ID)
			}
			if got := cs.Commits[0].Message; got != want {
				t.Errorf("got message %q, want %q", got, want)
			}
		})
	}
}

// The commit of an agent's uncommitted changes also gets the template's form.
func TestLeftoversAreInForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		template, summary, want string
		round                   int
	}{
		"at first":                {"{key} {task}", "Mended it.", "ABC-1 It breaks", 0},
		"in a round":              {"{key} {task}", "Mended it.", "ABC-1 Address review feedback — Mended it.", 1},
		"in a round, a suffix":    {"{task} ({key})", "Mended it.", "Address review feedback — Mended it. (ABC-1)", 1},
		"in a round without text": {"{key} {task}", "", "ABC-1 Address review feedback", 1},
		"without place":           {"Work on #{number}", "", "Work on #1\n\nIt breaks", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			h := w.Building()
			w.Task.Settings.Commit, w.Task.Ticket, w.Task.Round, w.Task.Work.Summary = c.template, "ABC-1", c.round, c.summary
			h.Write(t, map[string]string{"left.txt": "x\n"})
			e := w.Collected()
			cs, err := w.Files.LoadChangeset(e.Work().Ref)
			workflowtest.Check(t, err)
			if got := cs.Commits[0].Message; got != c.want {
				t.Errorf("got message %q, want %q", got, c.want)
			}
		})
	}
}
