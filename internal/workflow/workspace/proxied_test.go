package workspace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

func TestProxied(t *testing.T) {
	t.Parallel()
	const proxy, none = "http://run:secret@127.0.0.1:9413", "127.0.0.1,localhost,::1"
	for name, c := range map[string]struct {
		env  map[string]string
		kind string
		want map[string]string
	}{
		"a sandbox without a network":       {kind: "bwrap", want: map[string]string{"HTTP_PROXY": proxy, "http_proxy": proxy, "HTTPS_PROXY": proxy, "https_proxy": proxy, "NO_PROXY": none, "no_proxy": none}},
		"a sandbox with its host's network": {kind: state.SandboxPlain, env: map[string]string{"A": "b"}, want: map[string]string{"A": "b"}},
		"the operator's variable": {kind: "cx43", env: map[string]string{"https_proxy": "x", "NO_PROXY": "y"},
			want: map[string]string{"HTTP_PROXY": proxy, "http_proxy": proxy, "HTTPS_PROXY": proxy, "https_proxy": "x", "NO_PROXY": "y", "no_proxy": none}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, proxied(c.env, c.kind, "http://127.0.0.1:9413", "secret")); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}
