package runner

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// inherited are the variables that a run gets from the runner's own environment.
var inherited = [...]string{
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// fallbackPath is the PATH of a run if neither the runner nor the spec has one.
const fallbackPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// personal are those of them that say who somebody is. Another user has its own.
var personal = [...]string{"HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"}

// environment is what the commands of a run see: a few variables of ours, what the spec adds, and
// the mark by which leftovers are found. Where a run has a user of its own, who that is comes later.
func environment(spec Spec, runDir string) []string {
	vars := map[string]string{"PATH": fallbackPath}
	if path := os.Getenv("PATH"); path != "" {
		vars["PATH"] = path
	}
	for _, name := range inherited {
		if len(spec.Become) > 0 && slices.Contains(personal[:], name) {
			continue
		}
		if value, ok := os.LookupEnv(name); ok {
			vars[name] = value
		}
	}
	maps.Copy(vars, spec.Env)
	vars["ERRAND_RUN"], vars[proc.MarkVariable] = spec.ID, runDir
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// withPersonal adds who the caller is, where the variables do not say it yet.
func withPersonal(env []string) []string {
	env = slices.Clone(env)
	for _, name := range personal {
		value, known := os.LookupEnv(name)
		if known && !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			env = append(env, name+"="+value)
		}
	}
	return env
}
