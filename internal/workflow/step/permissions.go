package step

import (
	"context"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// Installations reads the permissions of the App's installations.
type Installations interface {
	Installation(ctx context.Context, id int64) (forge.Installation, error)
}

// MissingPermissions returns a Waiting if the App's installation lacks a permission without which no task can be
// finished. It is checked before an agent starts, whose cost would be wasted.
func MissingPermissions(ctx context.Context, github Installations, w *Attempt) (*state.Waiting, error) {
	in, err := github.Installation(ctx, w.Repo.Installation)
	if err != nil {
		return nil, fmt.Errorf("read the App's permissions: %w", err)
	}
	var missing []string
	known := w.Task.Waiting != nil && w.Task.Waiting.Kind == state.WaitPermission // and logged
	for _, lack := range in.MissingPermissions() {
		if !lack.Required {
			continue
		}
		missing = append(missing, lack.String())
		if !known {
			w.Log.Warn().Str("account", w.Repo.Owner).Str("permission", lack.Permission).Str("needed", lack.Level).Str("granted", lack.Granted).Msg("the App lacks a permission")
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return &state.Waiting{
		Kind: state.WaitPermission, Detail: "the App lacks permissions here: " + strings.Join(missing, ", "),
		Hint: fmt.Sprintf("An owner of %s grants them in the settings of the App's installation", w.Repo.Owner), URL: in.URL,
	}, nil
}
