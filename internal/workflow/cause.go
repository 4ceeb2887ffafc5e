package workflow

import (
	"strings"

	"github.com/errand-bot/errand/internal/agent"
)

// cause says in words why a run ended that the model's API ended. Message is what the agent's program says of it:
// what the gateway has said is taken as it is, without what the program has put before it.
func cause(s agent.Status, message string) string {
	if _, said, ok := strings.Cut(message, "errand: "); ok {
		return said
	}
	words := map[agent.Status]string{
		agent.StatusRateLimited: "the model's provider allows no more calls for now",
		agent.StatusOverloaded:  "the model's provider is overloaded or failing",
		agent.StatusNetwork:     "the model could not be reached, or its answer was cut off",
		agent.StatusAuth:        "the model's provider refused the call",
		agent.StatusBilling:     "the model's provider wants to be paid first",
		agent.StatusRefused:     "the model declined",
	}[s]
	message = strings.TrimPrefix(message, "API Error: ")
	switch {
	case words == "":
		return message
	case message == "":
		return words
	}
	return words + ": " + message
}
