package runner

import (
	"context"
	"time"

	"github.com/errand-bot/errand/internal/runner/tetherd"
)

// openTetherRequests returns the number of open requests at the tether's daemon, 0 without a daemon.
func openTetherRequests(root Root) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	status, err := tetherd.Ask(ctx, root.TetherDir())
	if err != nil {
		return 0
	}
	return status.Open
}
