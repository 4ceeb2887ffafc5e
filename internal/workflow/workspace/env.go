package workspace

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/runner/maven"
	"github.com/errand-bot/errand/internal/runner/roots"
	"github.com/errand-bot/errand/state"
)

// AgentEnv returns the environment of an agent's run: the variables of the operator and the repository, and the way to
// the repository and to the hosts that the operator allows.
func (ws *Workspace) AgentEnv(env map[string]string) map[string]string {
	return ws.withRegistries(ws.withProxy(ws.withGit(ws.open.withVariables(ws.task, env))))
}

// CheckEnv returns the environment of the repository's checks: as an agent's, but without access to the repository.
func (ws *Workspace) CheckEnv(env map[string]string) map[string]string {
	return ws.withRegistries(ws.withProxy(ws.open.withVariables(ws.task, env)))
}

// RunToken returns the token by which the task's run is known at the tether.
func (ws *Workspace) RunToken() string { return ws.open.Tether.RunToken(ws.task.Run.ID) }

// withVariables adds to an environment the variables of the repository, where nothing else is set, and over all those
// that the operator sets for its tests. Neither may name a variable that errand or an agent's program sets.
func (o *Opener) withVariables(t *state.Task, env map[string]string) map[string]string {
	out := maps.Clone(t.Settings.Env)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, env)
	maps.Copy(out, o.Tests(t).Env)
	return out
}

// withGit lets the agent's own git read the repository through the tether, for the time of the run: to merge or rebase
// it must fetch. The configured submodules are read there, too, for all forms of their addresses in .gitmodules.
// Nothing of it is written to a file.
func (ws *Workspace) withGit(env map[string]string) map[string]string {
	base := ws.Place.BaseURL
	settings := [][2]string{{"http." + base + "/git/.extraHeader", "Authorization: Bearer " + ws.RunToken()}}
	if ws.open.Submodules != nil {
		for _, pattern := range ws.open.Submodules(ws.task.Repo.FullName()) {
			settings = append(settings, insteadOf(ws.task.Repo, base, pattern)...)
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

// insteadOf makes git fetch repositories that match a pattern from the tether instead of the forge, as far
// as the part before the pattern's first star tells them apart.
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

// TrustRegistries lets the programs on the VM trust errand's certificates for the private registries of the repository, if it has any. It
// must have succeeded on a VM before a run starts there.
func (ws *Workspace) TrustRegistries(ctx context.Context) error {
	authority := ws.authority()
	if authority == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, trustTimeout)
	defer cancel()
	if err := ws.open.Runner.Trust(ctx, ws.VM.Name, roots.Spec{Dir: ws.rootsDir(), Authority: authority}); err != nil {
		return fmt.Errorf("let VM %s trust the registries: %w", ws.VM.Name, err)
	}
	return nil
}

// trustTimeout is the timeout of TrustRegistries, which writes three files.
const trustTimeout = 2 * time.Minute

// authority returns the certificate of the registries' authority, nil if the repository has no registries or the VM uses no proxy.
func (ws *Workspace) authority() []byte {
	if ws.open.Authority == nil || ws.VM.Kind == state.SandboxPlain {
		return nil
	}
	return ws.open.Authority(ws.task.Repo.FullName())
}

func (ws *Workspace) rootsDir() string { return path.Join(ws.Place.Home, ".errand", "registries") }

// withRegistries lets programs find the authorities that TrustRegistries has written. Variables that are set are kept, and Java's options
// continued.
func (ws *Workspace) withRegistries(env map[string]string) map[string]string {
	if ws.authority() == nil {
		return env
	}
	out := maps.Clone(env)
	for name, value := range roots.Environment(ws.rootsDir()) {
		switch old, set := out[name]; {
		case !set:
			out[name] = value
		case name == roots.JavaOptions:
			out[name] = old + " " + value
		}
	}
	return out
}

// withProxy adds the proxy at the VM's end of the tether to an environment.
func (ws *Workspace) withProxy(env map[string]string) map[string]string {
	return proxied(env, ws.VM.Kind, ws.Place.BaseURL, ws.RunToken())
}

// proxied lets the processes of a run on a VM reach the hosts that the operator allows, through the proxy at the VM's
// end of the tether. A plain sandbox needs no proxy. The operator's own settings are kept. Some programs read the
// names in capitals, others in lower case. Java reads neither: Gradle gets options, and the runner writes a file for Maven.
func proxied(env map[string]string, kind, base, token string) map[string]string {
	if kind == state.SandboxPlain {
		return env
	}
	out := maps.Clone(env)
	if out == nil {
		out = map[string]string{}
	}
	proxy := strings.Replace(base, "://", "://run:"+token+"@", 1)
	for name, value := range map[string]string{"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "127.0.0.1,localhost,::1"} {
		for _, n := range []string{name, strings.ToLower(name)} {
			if _, set := out[n]; !set {
				out[n] = value
			}
		}
	}
	if at, err := url.Parse(base); err == nil && out["HTTPS_PROXY"] == proxy && out["https_proxy"] == proxy {
		out[maven.PasswordVariable] = token
		out["GRADLE_OPTS"] = strings.TrimSpace(javaProxy(at, token) + " " + out["GRADLE_OPTS"])
	}
	return out
}

// javaProxy returns the options that name a proxy to a Java program. The last one allows the password in requests for HTTPS.
func javaProxy(at *url.URL, token string) string {
	var options []string
	for _, scheme := range []string{"http", "https"} {
		options = append(options, fmt.Sprintf("-D%[1]s.proxyHost=%[2]s -D%[1]s.proxyPort=%[3]s -D%[1]s.proxyUser=run -D%[1]s.proxyPassword=%[4]s", scheme, at.Hostname(), at.Port(), token))
	}
	return strings.Join(append(options, "-Djdk.http.auth.tunneling.disabledSchemes="), " ")
}
