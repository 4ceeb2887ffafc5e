package runner

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// inherited lists the variables that a run gets from the runner's own environment.
var inherited = [...]string{
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// fallbackPath is the PATH of a run if neither the runner nor the spec sets one.
const fallbackPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// personal lists those of the inherited variables that identify the user. Another user has its own values.
var personal = [...]string{"HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"}

// environment returns the environment of a run's commands: some inherited variables, those of the spec, and the mark by
// which leftover processes are found. If the run has its own user, withPersonal adds the personal variables later.
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

// withPersonal adds the caller's personal variables that env does not set.
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
