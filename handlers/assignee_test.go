package handlers_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/errand-bot/errand/handlers"
)

// Assigning the machine user or the App's own account, which is identified by its ID, starts a task; assigning a third
// account does not, even if it has the same login.
func TestMachineUserAndAppAccountAreAssignees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.App().BotID
	for name, c := range map[string]struct {
		configured string
		id         int64
		login      string
		want       bool
	}{
		"the machine user":                        {"errand-bot", 71, "Errand-Bot", true},
		"the App's account in addition to it":     {"errand-bot", bot, "errand[bot]", true},
		"the App's account alone":                 {"", bot, "errand[bot]", true},
		"another App's account":                   {"errand-bot", bot + 1, "errand[bot]", false},
		"a person":                                {"errand-bot", 72, "ada", false},
		"a login with the same prefix":            {"errand-bot", 73, "errand-bot-2", false},
		"a machine user where none is configured": {"", 71, "errand-bot", false},
		"an account without a login":              {"", 74, "", false},
	} {
		m := handlers.NewMapper(handlers.Config{Slug: "errand", BotID: bot, Assignee: c.configured, Label: "errand"}, w.tasks)
		for _, action := range []string{"assigned", "unassigned"} {
			payload, err := json.Marshal(map[string]any{
				"action": action, "assignee": map[string]any{"id": c.id, "login": c.login}, "sender": map[string]any{"id": 5, "login": "ada", "type": "User"},
				"issue":        map[string]any{"number": 1, "node_id": "I_1", "title": "It breaks", "user": map[string]any{"id": 5, "login": "ada"}},
				"repository":   map[string]any{"id": 70, "name": "slug", "full_name": full, "owner": map[string]any{"login": "acme"}},
				"installation": map[string]any{"id": 7},
			})
			check(t, err)
			events, reason, err := m.Map(t.Context(), "issues", fmt.Sprintf("%s-%d-%s", action, c.id, c.configured), payload)
			if got := len(events) == 1; err != nil || got != c.want {
				t.Errorf("%s %s: got %d events (%s), error %v", action, name, len(events), reason, err)
			}
		}
	}
}
