package step

import (
	"fmt"
	"slices"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// ConfigFile is the file with the repository's own settings. It is read from the default branch only.
const ConfigFile = ".errand.yml"

// RepoSettings reads the settings of repositories.
type RepoSettings struct {
	// Defaults are the operator's.
	Defaults settings.Settings
	// Parse reads a ConfigFile over the defaults. Its error is for people.
	Parse func(data []byte) (settings.Settings, error)
	// ShellFor returns the commands that the operator lets the agents of a repository, named as OWNER/NAME, call in a
	// shell; it may be nil.
	ShellFor func(repo string) settings.Shell
}

// Of returns the settings of a repository, named as OWNER/NAME: its own, or those of the organization's `.github`
// repository if it has none. A Waiting says why they cannot be used; it is of kind WaitConfig if they are invalid.
func (s *RepoSettings) Of(repo string, out forge.IssueSnapshot) (settings.Settings, *state.Waiting) {
	data := out.Config
	if data == nil {
		data = out.OrgConfig
	}
	repoSettings := s.Defaults
	if data != nil {
		var err error
		if repoSettings, err = s.Parse(data); err != nil {
			return repoSettings, &state.Waiting{Kind: state.WaitConfig, Detail: err.Error()}
		}
	}
	if why := s.applyShell(repo, &repoSettings); why != "" {
		return repoSettings, &state.Waiting{Kind: state.WaitConfig, Detail: why}
	}
	if !repoSettings.Enabled {
		return repoSettings, &state.Waiting{Kind: state.WaitDisabled, Detail: "`enabled` is false, so nothing new is started"}
	}
	return repoSettings, nil
}

// applyShell adds the operator's list of commands to settings without a list. It returns an error message if the
// repository allows every command and the operator does not.
func (s *RepoSettings) applyShell(repo string, repoSettings *settings.Settings) string {
	var operators settings.Shell
	if s.ShellFor != nil {
		operators = s.ShellFor(repo)
	}
	switch {
	case !repoSettings.Shell.Set:
		repoSettings.Shell = operators
	case repoSettings.Shell.All && !operators.All:
		return fmt.Sprintf("tools.shell: `all` lets agents run any command, which errand's operator has to allow with "+
			"`repository.tools.repositories: {%s: all}`; otherwise list the commands that agents may run, such as `[git, go, make]`, or omit the key", repo)
	}
	return ""
}

// Commands returns the commands that the repository's settings name for set-up and checks.
func Commands(s settings.Settings) []string {
	var list []string
	for _, c := range slices.Concat(s.Setup, s.Check) {
		list = append(list, c.Run)
	}
	return list
}
