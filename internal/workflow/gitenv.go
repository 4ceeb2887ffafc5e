package workflow

import (
	"fmt"
	"maps"
	"strings"

	"github.com/errand-bot/errand/state"
)

// withGit lets the agent's own git read the repository through the tether, for the time of the run: to
// merge or rebase it has to fetch. What the configuration names as submodules is read there, too, however
// .gitmodules writes its address. Nothing of it is written to a file.
func (s *Steps) withGit(t *state.Task, env map[string]string, base string) map[string]string {
	settings := [][2]string{{"http." + base + "/git/.extraHeader", "Authorization: Bearer " + s.Tether.RunToken(t.Run.ID)}}
	if s.Submodules != nil {
		for _, pattern := range s.Submodules(t.Repo.FullName()) {
			settings = append(settings, insteadOf(t.Repo, base, pattern)...)
		}
	}
	out := maps.Clone(env)
	if out == nil {
		out = map[string]string{}
	}
	out["GIT_TERMINAL_PROMPT"] = "0"
	out["GIT_CONFIG_COUNT"] = fmt.Sprint(len(settings))
	for i, kv := range settings {
		out[fmt.Sprintf("GIT_CONFIG_KEY_%d", i)], out[fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)] = kv[0], kv[1]
	}
	return out
}

// insteadOf has git ask the tether where it would ask the forge for repositories that fit a pattern, as far
// as what stands before the pattern's first star tells them apart.
func insteadOf(r state.Repo, base, pattern string) [][2]string {
	forge, ok := strings.CutSuffix(strings.TrimSuffix(r.URL, "/"), "/"+r.FullName())
	_, host, has := strings.Cut(forge, "://")
	if !ok || !has {
		return nil
	}
	begins, _, _ := strings.Cut(pattern, "*")
	key := "url." + base + "/git/" + begins + ".insteadOf"
	return [][2]string{{key, forge + "/" + begins}, {key, "git@" + host + ":" + begins}, {key, "ssh://git@" + host + "/" + begins}}
}
