package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The limits on variables on VMs.
const (
	maxEnv      = 50
	maxEnvBytes = 8 << 10
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// usedVariables returns variables, in upper case, that errand, git, agents' programs or their runtimes read. Setting one of them
// would change more than a test.
func usedVariables() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND",
		"TMPDIR", "EDITOR", "VISUAL", "PAGER", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS",
		"NODE_TLS_REJECT_UNAUTHORIZED", "PYTHONSTARTUP", "PYTHONHOME", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
		"GOOGLE_API_KEY",
	}
}

// usedPrefixes returns the prefixes of such variables.
func usedPrefixes() []string {
	return []string{
		"LD_", "DYLD_", "GIT_", "SSH_", "XDG_", "ERRAND_", "ANTHROPIC_", "CLAUDE_", "OPENAI_", "CODEX_", "GEMINI_", "AIDER_", "LITELLM_", "MCP_",
		"BASH_FUNC_", "GOOGLE_GEMINI_", "GOOGLE_GENAI_", "GOOGLE_CLOUD_",
	}
}

// isReserved reports whether repositories and tests may not set a variable, in any case.
func isReserved(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(usedVariables(), name) || slices.ContainsFunc(usedPrefixes(), func(p string) bool { return strings.HasPrefix(name, p) })
}

// variableProblems checks the names and the number of variables.
func variableProblems[V any](r *report, key string, env map[string]V) {
	r.unless(len(env) <= maxEnv, key, "%d variables are too many; write at most %d", len(env), maxEnv)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		at := key + "." + cut(name)
		r.unless(variable.MatchString(name), at, "%q cannot be the name of a variable; use letters, digits and _", cut(name))
		r.unless(!isReserved(name), at, "errand or a program of the agents sets or reads %s itself; use another name, or set it within the command that needs it", cut(name))
	}
}

// envProblems checks the variables in `.errand.yml`. holdsSecret may be nil.
func envProblems(r *report, env map[string]string, holdsSecret func(text string) bool) {
	variableProblems(r, "env", env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		key, value := "env."+cut(name), env[name]
		r.unless(len(value) <= maxEnvBytes, key, "the value is longer than %d bytes; put it into a file of the repository", maxEnvBytes)
		r.unless(!strings.Contains(value, "\x00"), key, "the value contains a NUL; remove it")
		if holdsSecret != nil && (holdsSecret(value) || holdsSecret(fmt.Sprintf("%s=%q", name, value))) {
			r.unless(false, key, "the value looks like a secret, which everybody who can read the repository knows; remove it, replace it at its source, and ask the operator of errand for an entry under test_env")
		}
	}
}
