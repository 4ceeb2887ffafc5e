package workflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/state"
)

// permitted returns what the task waits for if the App's installation does not grant a permission without which no task
// reaches its end. It is asked before an agent is: what an agent costs would be spent in vain.
func (s *Steps) permitted(ctx context.Context, w *unit) (*state.Waiting, error) {
	in, err := s.GitHub.Installation(ctx, w.repo.Installation)
	if err != nil {
		return nil, fmt.Errorf("read the App's permissions: %w", err)
	}
	var missing []string
	known := w.task.Waiting != nil && w.task.Waiting.Kind == state.WaitPermission // and logged
	for _, lack := range in.MissingPermissions() {
		if !lack.Required {
			continue
		}
		missing = append(missing, lack.String())
		if !known {
			w.log.Warn().Str("account", w.repo.Owner).Str("permission", lack.Permission).Str("needed", lack.Level).Str("granted", lack.Granted).Msg("the App lacks a permission")
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return &state.Waiting{
		Kind: state.WaitPermission, Detail: "the App lacks permissions here: " + strings.Join(missing, ", "),
		Hint: fmt.Sprintf("An owner of %s grants them in the settings of the App's installation", w.repo.Owner), URL: in.URL,
	}, nil
}
