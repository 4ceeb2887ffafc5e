package runner

import (
	"context"
	"time"

	"github.com/errand-bot/errand/internal/runner/tetherd"
)

// tetherRequests asks the tether's daemon how many requests are open. Without a daemon there are none.
func tetherRequests(root Root) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	status, err := tetherd.Ask(ctx, root.TetherDir())
	if err != nil {
		return 0
	}
	return status.Open
}
