package runner

import (
	"maps"
	"os"
	"slices"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// inherited are the variables that a run gets from the runner's own environment.
var inherited = [...]string{
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// fallbackPath is the PATH of a run if neither the runner nor the spec has one.
const fallbackPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is what the commands of a run see: a few variables of ours, what the spec adds, and
// the mark by which leftovers are found.
func environment(spec Spec, runDir string) []string {
	vars := map[string]string{"PATH": fallbackPath}
	if path := os.Getenv("PATH"); path != "" {
		vars["PATH"] = path
	}
	for _, name := range inherited {
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
