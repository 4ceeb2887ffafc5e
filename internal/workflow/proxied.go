package workflow

import (
	"maps"
	"strings"
)

// plainKind is the kind of box that has its host's network: what is started there needs no proxy.
const plainKind = "plain"

// proxied lets what is started on a VM reach the hosts that the operator allows, through the proxy at the VM's
// end of the tether, for the time of the run. What the operator set himself stays. Some programs read the
// names in capitals and some the others.
func proxied(env map[string]string, kind, base, token string) map[string]string {
	if kind == plainKind {
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
	return out
}
