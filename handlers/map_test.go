package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func ptr[T any](v T) *T { return &v }

// wants compares the mapped events with the expected ones.
func (w *world) wants(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.mapped()); diff != "" {
		w.t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestIssuesEvents(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *world, n int) error
		want []string
	}{
		"assigned":           {func(w *world, n int) error { return w.ada.Assign(full, n, "errand-bot") }, []string{`triggered #1 by ada via assigned base release "It breaks"`}},
		"somebody assigned":  {func(w *world, n int) error { return w.ada.Assign(full, n, "ada") }, []string{"issues: somebody other than errand was assigned"}},
		"several assigned":   {func(w *world, n int) error { return w.ada.Assign(full, n, "ada", "errand-bot") }, []string{"issues: somebody other than errand was assigned", `triggered #1 by ada via assigned base release "It breaks"`}},
		"labeled":            {func(w *world, n int) error { return w.ada.AddLabels(full, n, "errand") }, []string{`triggered #1 by ada via label base release "It breaks"`}},
		"not errand's label": {func(w *world, n int) error { return w.ada.AddLabels(full, n, "bug") }, []string{"issues: not errand's label"}},
		"closed":             {func(w *world, n int) error { return w.ada.Close(full, n, "not_planned") }, []string{"issue_closed #1 by ada"}},
		"title edited": {func(w *world, n int) error {
			return w.ada.EditIssue(full, n, simgithub.IssueEdit{Title: ptr("It burns")})
		}, []string{`issue_edited #1 by ada "It burns"`}},
		"text edited":          {func(w *world, n int) error { return w.ada.EditIssue(full, n, simgithub.IssueEdit{Body: ptr("Badly.")}) }, []string{`issue_edited #1 by ada "It breaks"`}},
		"locked":               {func(w *world, n int) error { return w.ada.Lock(full, n, "") }, []string{"locked #1 by ada"}},
		"a comment":            {func(w *world, n int) error { return errOf(w.As("eve").Comment(full, n, "Me too")) }, []string{`commented #1 by eve "It breaks"`}},
		"a mention":            {func(w *world, n int) error { return errOf(w.ada.Comment(full, n, "@errand")) }, []string{`commented #1 by ada "It breaks" mention order:plan`}},
		"a mention with base":  {func(w *world, n int) error { return errOf(w.ada.Comment(full, n, "@errand plan\nbase: v2")) }, []string{`commented #1 by ada base v2 "It breaks" mention order:plan order:message`}},
		"two commands":         {func(w *world, n int) error { return errOf(w.ada.Comment(full, n, "@errand budget +5\n@errand retry")) }, []string{`commented #1 by ada "It breaks" mention order:budget order:retry`}},
		"a message":            {func(w *world, n int) error { return errOf(w.ada.Comment(full, n, "@errand the loop is wrong")) }, []string{`commented #1 by ada "It breaks" mention order:message`}},
		"a quoted command":     {func(w *world, n int) error { return errOf(w.ada.Comment(full, n, "> @errand approve\n\nNot yet.")) }, []string{`commented #1 by ada "It breaks" quoted`}},
		"errand's own comment": {func(w *world, n int) error { return errOf(w.As(w.App().BotLogin).Comment(full, n, "@errand plan")) }, []string{"issue_comment: errand's own action"}},
		"a bot's comment": {func(w *world, n int) error {
			w.AddBot("dependabot[bot]")
			return errOf(w.As("dependabot[bot]").Comment(full, n, "@errand plan"))
		}, []string{`commented #1 by dependabot[bot] (bot) "It breaks" mention order:plan`}},
		"a comment on a foreign PR": {func(w *world, n int) error {
			p := w.pull()
			w.tasks.list = nil
			return errOf(w.ada.Comment(full, p.Number, "@errand plan"))
		}, []string{"issue_comment: not one of errand's pull requests"}},
		"an edited comment": {func(w *world, n int) error {
			c, err := w.ada.Comment(full, n, "words")
			w.deliveredHooks()
			return errors.Join(err, w.ada.EditComment(full, c.ID, "@errand approve"))
		}, []string{"issue_comment: an edited comment: the agent sees its current text when it next reads"}},
		"a deleted comment": {func(w *world, n int) error {
			c, err := w.As("eve").Comment(full, n, "words")
			w.deliveredHooks()
			return errors.Join(err, w.ada.DeleteComment(full, c.ID))
		}, []string{"plan_deleted #1 by ada"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			i := w.issue("Always.\n\nbase: release")
			check(t, c.act(w, i.Number))
			w.wants(c.want...)
		})
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestRemovedTriggersAreMapped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue("")
	check(t, w.ada.Assign(full, i.Number, "errand-bot"))
	check(t, w.ada.AddLabels(full, i.Number, "errand"))
	w.deliveredHooks()
	check(t, w.ada.Unassign(full, i.Number, "errand-bot"))
	check(t, w.ada.RemoveLabel(full, i.Number, "errand"))
	w.wants("untriggered #1 by ada via assigned", "untriggered #1 by ada via label")
}

// TestMentionsInIssueTexts: a mention in the text of a new issue, or one that an edit adds, is read like a comment by whoever wrote it.
func TestMentionsInIssueTexts(t *testing.T) {
	t.Parallel()
	open := func(login, body string) func(w *world) error {
		return func(w *world) error {
			return errOf(w.As(login).OpenIssue(full, simgithub.NewIssue{Title: "It breaks", Body: body}))
		}
	}
	edit := func(author, before, editor, after string) func(w *world) error {
		return func(w *world) error {
			i, err := w.As(author).OpenIssue(full, simgithub.NewIssue{Title: "It breaks", Body: before})
			w.deliveredHooks()
			return errors.Join(err, w.As(editor).EditIssue(full, i.Number, simgithub.IssueEdit{Body: ptr(after)}))
		}
	}
	const none = "issues: its text does not mention errand; assignees and labels arrive in separate webhooks"
	for name, c := range map[string]struct {
		act  func(w *world) error
		want []string
	}{
		"by a writer":          {open("ada", "Always.\n\n@errand"), []string{`commented #1 by ada "It breaks" in-issue mention order:plan`}},
		"by an outsider":       {open("eve", "@errand mend it"), []string{`commented #1 by eve "It breaks" in-issue mention order:message`}},
		"with commands":        {open("bob", "@errand plan base: v2\n@errand model opus"), []string{`commented #1 by bob base v2 "It breaks" in-issue mention order:plan order:model`}},
		"none":                 {open("ada", "Always."), []string{none}},
		"in a quote":           {open("ada", "> @errand plan"), []string{none}},
		"in code":              {open("bob", "```\n@errand plan\n```"), []string{none}},
		"in the template":      {open("ada", "<!-- @errand plan -->\n\nAlways."), []string{none}},
		"within a line":        {open("ada", "Perhaps @errand can help."), []string{none}},
		"added":                {edit("eve", "Always.", "ada", "Always.\n\n@errand"), []string{`issue_edited #1 by ada "It breaks"`, `commented #1 by ada "It breaks" in-issue mention order:plan`}},
		"added by its author":  {edit("eve", "Always.", "eve", "@errand mend it"), []string{`issue_edited #1 by eve "It breaks"`, `commented #1 by eve "It breaks" in-issue mention order:plan`}},
		"added commands":       {edit("ada", "Always.", "bob", "@errand plan\n@errand cancel"), []string{`issue_edited #1 by bob "It breaks"`, `commented #1 by bob "It breaks" in-issue mention order:plan`}},
		"another command":      {edit("ada", "Always.", "bob", "@errand cancel"), []string{`issue_edited #1 by bob "It breaks"`}},
		"it was there already": {edit("eve", "@errand mend it", "ada", "@errand mend it, please"), []string{`issue_edited #1 by ada "It breaks"`}},
		"taken out":            {edit("ada", "@errand", "ada", "Always."), []string{`issue_edited #1 by ada "It breaks"`}},
		"by errand itself":     {func(w *world) error { return open(w.App().BotLogin, "@errand plan")(w) }, []string{"issues: errand's own action"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			check(t, c.act(w))
			w.wants(c.want...)
		})
	}
}

// TestMentionAddedToAnEmptyText: GitHub reports no earlier text then.
func TestMentionAddedToAnEmptyText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sender := range []int{4, 5} {
		payload := fmt.Sprintf(`{"action":"edited","changes":{"body":{"from":null}},"issue":{"number":1,"title":"t","body":"@errand mend it",
			"user":{"id":4},"updated_at":"2026-01-02T03:04:05Z","node_id":"n"},"repository":{"id":70},"sender":{"id":%d}}`, sender)
		events, _, err := w.mapper.Map(t.Context(), "issues", "guid", []byte(payload))
		check(t, err)
		if len(events) != 2 || events[1].Kind() != event.KindCommented || events[1].By.ID != int64(sender) {
			t.Errorf("got events %v, want the mention by the editor", events)
		}
	}
}

// TestTransferredIssueStartsNothing: a transferred issue is new in its repository, but its text is not.
func TestTransferredIssueStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	payload := `{"action":"opened","changes":{"old_issue":{"number":4},"old_repository":{"id":69}},"issue":{"number":1,"title":"t","body":"@errand plan"},"repository":{"id":70},"sender":{"id":5}}`
	events, reason, err := w.mapper.Map(t.Context(), "issues", "guid", []byte(payload))
	if len(events) != 0 || err != nil || !strings.Contains(reason, "transferred") {
		t.Errorf("got events %v, reason %q, error %v; want none because it was transferred", events, reason, err)
	}
}

// One event is compared with GitHub's data, field by field.
func TestEventCarriesTheIssue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i, err := w.As("eve").OpenIssue(full, simgithub.NewIssue{Title: "It breaks", Body: "Always."})
	check(t, err)
	check(t, w.ada.EditIssue(full, i.Number, simgithub.IssueEdit{Type: ptr("Bug")}))
	check(t, w.ada.AddLabels(full, i.Number, "bug"))
	w.deliveredHooks()
	check(t, w.ada.Assign(full, i.Number, "errand-bot"))
	hooks := w.deliveredHooks()
	events, _, err := w.mapper.Map(t.Context(), hooks[0].event, "guid", hooks[0].payload)
	check(t, err)
	ada, _ := w.User("ada")
	eve, _ := w.User("eve")
	now, err := w.ada.Issue(full, i.Number)
	check(t, err)
	want := []event.Event{{
		Task:         state.TaskKey{Repo: w.repo.ID, Issue: 1},
		At:           now.UpdatedAt.UTC(),
		By:           state.Person{ID: ada.ID, Login: "ada"},
		Delivery:     "guid",
		Installation: w.installation,
		Via:          "assigned",
		Repo:         &state.Repo{ID: w.repo.ID, Owner: "acme", Name: "slug", DefaultBranch: "main", URL: w.BaseURL() + "/acme/slug"},
		Payload:      event.Triggered{Issue: &state.Issue{Node: i.NodeID, Title: "It breaks", Body: "Always.", Author: state.Person{ID: eve.ID, Login: "eve"}, Labels: []string{"bug"}, Type: "Bug"}},
	}}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

// Every delivery of the same fact has the same ID, and different edits have different IDs.
func TestIDsIdentifyFacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue("a")
	ids := map[string]bool{}
	for n := range 3 {
		check(t, w.ada.EditIssue(full, i.Number, simgithub.IssueEdit{Body: ptr(fmt.Sprint("text ", n))}))
		check(t, errOf(w.ada.Comment(full, i.Number, "same words")))
	}
	for _, h := range w.deliveredHooks() {
		var first string
		for range 2 {
			events, _, err := w.mapper.Map(t.Context(), h.event, h.guid, h.payload)
			check(t, err)
			if first == "" {
				first = events[0].ID
			}
			if events[0].ID != first || first == "" {
				t.Errorf("%s: got ID %q first and %q on redelivery", h.event, first, events[0].ID)
			}
		}
		ids[first] = true
	}
	if len(ids) != 6 {
		t.Errorf("got %d IDs for 6 facts: %v", len(ids), ids)
	}
}

// planBody returns a plan comment with a box, as errand writes it.
func planBody() string {
	return "## Plan\n\nDo it.\n\n" + comment.ApprovalBox("0a1b2c3d") + "\n" + comment.ApproachBox("0a1b2c3d", 2, "the other way") + "\n"
}

func TestChangesToErrandsComments(t *testing.T) {
	t.Parallel()
	tick := func(box int) func(string) string {
		return func(body string) string {
			lines := strings.Split(body, "\n")
			lines[4+box] = strings.Replace(lines[4+box], "[ ]", "[x]", 1)
			return strings.Join(lines, "\n")
		}
	}
	for name, c := range map[string]struct {
		edit func(string) string // nil: delete
		want string
	}{
		"ticked":          {tick(0), "plan_edited #1 by ada only-boxes ticked candidate:box:0"},
		"approach ticked": {tick(1), "plan_edited #1 by ada only-boxes ticked candidate:box:2"},
		"both ticked":     {func(s string) string { return tick(0)(tick(1)(s)) }, "plan_edited #1 by ada only-boxes"},
		"text changed":    {func(s string) string { return strings.Replace(s, "Do it.", "Delete it.", 1) }, "plan_edited #1 by ada"},
		"text and tick":   {func(s string) string { return tick(0)(strings.Replace(s, "Do it.", "Delete it.", 1)) }, "plan_edited #1 by ada"},
		"deleted":         {nil, "plan_deleted #1 by ada"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			i := w.issue("Always.")
			plan, err := w.As(w.App().BotLogin).Comment(full, i.Number, planBody())
			check(t, err)
			w.deliveredHooks()
			if c.edit == nil {
				check(t, w.ada.DeleteComment(full, plan.ID))
			} else {
				check(t, w.ada.EditComment(full, plan.ID, c.edit(planBody())))
			}
			w.wants(c.want)
		})
	}
}

func TestErrandsOwnEditsAreIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue("Always.")
	bot := w.As(w.App().BotLogin)
	c, err := bot.Comment(full, i.Number, planBody())
	check(t, err)
	check(t, bot.EditComment(full, c.ID, "anew"))
	check(t, bot.DeleteComment(full, c.ID))
	w.wants("issue_comment: errand's own action", "issue_comment: errand's own action", "issue_comment: errand's own action")
}

// The sender of webhooks about a person's actions is replaced with errand's own account.
func TestErrandsOwnActionsAreIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue("Always.")
	check(t, w.ada.AddLabels(full, i.Number, "errand"))
	check(t, w.ada.EditIssue(full, i.Number, simgithub.IssueEdit{Body: ptr("Anew.")}))
	check(t, w.ada.Close(full, i.Number, ""))
	hooks := w.deliveredHooks()
	if len(hooks) != 3 {
		t.Fatalf("got %d webhooks, want more", len(hooks))
	}
	for _, h := range hooks {
		events, reason, err := w.mapper.Map(t.Context(), h.event, h.guid, sentBy(t, h.payload, w.App().BotID))
		if len(events) != 0 || reason != "errand's own action" || err != nil {
			t.Errorf("got %d events, reason %q, error %v; want none and a reason", len(events), reason, err)
		}
	}
}

// sentBy changes the sender of a webhook.
func sentBy(t *testing.T, payload []byte, id int64) []byte {
	t.Helper()
	var v map[string]any
	check(t, json.Unmarshal(payload, &v))
	v["sender"] = map[string]any{"id": id, "login": "errand[bot]", "type": "Bot"}
	out, err := json.Marshal(v)
	check(t, err)
	return out
}
