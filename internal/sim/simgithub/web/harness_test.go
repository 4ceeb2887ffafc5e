package web_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/simgithubtest"
	"github.com/errand-bot/errand/internal/sim/simgithub/web"
)

const repo = simgithubtest.Repo

// newSim returns a simulator with pages.
func newSim(t *testing.T) *simgithub.Sim {
	t.Helper()
	return simgithubtest.NewSim(t, simgithub.Config{Pages: web.Handler})
}

// world is a simulator with pages, one repository and an App that receives webhooks.
type world struct{ *simgithubtest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{simgithubtest.New(t, simgithub.Config{Pages: web.Handler})}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
