package realcli

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
)

// TestHeavyRepair lets real programs end with an unreadable closing block: errand asks for it again in the same
// session, with a schema for its form, so that its question reaches people; the work continues with their answer.
func TestHeavyRepair(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programs()[name]
			l := startLife(t, program(t, name), "repair_"+name+".yaml", func(c *demo.Config) {
				c.Adapter, c.Model = p.adapter, p.model
				c.Files = map[string]string{"slug.go": "package slug\n", ".errand.yml": "plan: none\n"}
			})
			issue := l.assign("Say more", "There is too little.")
			asked := l.until(issue, "the question", func(t *state.Task) bool { return t.Phase == state.PhaseAwaitingAnswer })
			if q := asked.Question; q == nil || q.Text != `Which "slug" do you mean?` {
				t.Errorf("got question %+v", q)
			}
			if n := len(asked.Runs); n != 2 || asked.Runs[0].Session == "" || asked.Runs[0].Session != asked.Runs[1].Session || asked.Runs[1].Status != "ok" {
				t.Errorf("got runs %+v", asked.Runs)
			}
			l.reachPhase(issue, "the comment", func(*state.Task) bool { return strings.Contains(l.botComments(issue), `Which "slug" do you mean?`) })
			_, err := l.GitHub.As(demo.Maintainer).Comment(demo.Full, issue, "The first.")
			check(t, err)
			l.reachPhase(issue, "the pull request", func(t *state.Task) bool { return t.Phase == state.PhasePROpen })
		})
	}
}
