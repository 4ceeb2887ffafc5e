package step

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestShell: the repository's list goes before the operator's; any command needs the operator's leave.
func TestShell(t *testing.T) {
	t.Parallel()
	all, list := state.Shell{Set: true, All: true}, state.Shell{Set: true, Commands: []string{"make"}}
	tests := map[string]struct {
		own, operators, want state.Shell
		refused              bool
	}{
		"nothing said":         {state.Shell{}, state.Shell{}, state.Shell{}, false},
		"the operator's":       {state.Shell{}, list, list, false},
		"the operator's all":   {state.Shell{}, all, all, false},
		"the repository's":     {list, all, list, false},
		"all":                  {all, state.Shell{}, all, true},
		"all against a list":   {all, list, all, true},
		"all with leave":       {all, all, all, false},
		"an empty list counts": {state.Shell{Set: true}, all, state.Shell{Set: true}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &RepoSettings{ShellFor: func(string) state.Shell { return tc.operators }}
			settings := state.Settings{Shell: tc.own}
			why := s.applyShell("acme/slug", &settings)
			if (why != "") != tc.refused {
				t.Errorf("refused: %q, want %v", why, tc.refused)
			}
			if !slices.Equal(settings.Shell.Commands, tc.want.Commands) || settings.Shell.All != tc.want.All || settings.Shell.Set != tc.want.Set {
				t.Errorf("%+v, want %+v", settings.Shell, tc.want)
			}
		})
	}
}
