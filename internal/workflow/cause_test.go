package workflow

import (
	"testing"

	"github.com/errand-bot/errand/internal/agent"
)

func TestCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status        agent.Status
		message, want string
	}{
		"the provider's words": {agent.StatusOverloaded, "API Error: 529 overloaded", "the model's provider is overloaded or failing: 529 overloaded"},
		"no words":             {agent.StatusNetwork, "", "the model could not be reached, or its answer was cut off"},
		"the gateway's words":  {agent.StatusAuth, "Failed to authenticate. API Error: 403 errand: the cap is reached", "the cap is reached"},
		"the agent's own":      {agent.StatusCrashed, "no result", "no result"},
	} {
		if got := cause(test.status, test.message); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
