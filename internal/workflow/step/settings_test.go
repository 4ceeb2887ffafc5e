package step

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state/settings"
)

// TestShell: the repository's list takes precedence over the operator's; permitting all commands requires the
// operator's permission.
func TestShell(t *testing.T) {
	t.Parallel()
	all, list := settings.Shell{Set: true, All: true}, settings.Shell{Set: true, Commands: []string{"make"}}
	tests := map[string]struct {
		own, operators, want settings.Shell
		refused              bool
	}{
		"nothing said":                 {settings.Shell{}, settings.Shell{}, settings.Shell{}, false},
		"the operator's":               {settings.Shell{}, list, list, false},
		"all by the operator":          {settings.Shell{}, all, all, false},
		"the repository's":             {list, all, list, false},
		"all":                          {all, settings.Shell{}, all, true},
		"all, with an operator's list": {all, list, all, true},
		"all, permitted":               {all, all, all, false},
		"an empty list counts":         {settings.Shell{Set: true}, all, settings.Shell{Set: true}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &RepoSettings{ShellFor: func(string) settings.Shell { return tc.operators }}
			repoSettings := settings.Settings{Shell: tc.own}
			why := s.applyShell("acme/slug", &repoSettings)
			if (why != "") != tc.refused {
				t.Errorf("got refusal %q, want %v", why, tc.refused)
			}
			if !slices.Equal(repoSettings.Shell.Commands, tc.want.Commands) || repoSettings.Shell.All != tc.want.All || repoSettings.Shell.Set != tc.want.Set {
				t.Errorf("got %+v, want %+v", repoSettings.Shell, tc.want)
			}
		})
	}
}
