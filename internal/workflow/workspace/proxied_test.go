package workspace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
)

func TestProxied(t *testing.T) {
	t.Parallel()
	const proxy, none = "http://run:secret@127.0.0.1:9413", "127.0.0.1,localhost,::1"
	const gradle = "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9413 -Dhttp.proxyUser=run -Dhttp.proxyPassword=secret " +
		"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9413 -Dhttps.proxyUser=run -Dhttps.proxyPassword=secret -Djdk.http.auth.tunneling.disabledSchemes="
	variables := func(gradle string) map[string]string {
		return map[string]string{
			"HTTP_PROXY": proxy, "http_proxy": proxy, "HTTPS_PROXY": proxy, "https_proxy": proxy, "NO_PROXY": none, "no_proxy": none,
			"ERRAND_PROXY_PASSWORD": "secret", "GRADLE_OPTS": gradle,
		}
	}
	for name, c := range map[string]struct {
		env  map[string]string
		kind string
		want map[string]string
	}{
		"a sandbox without a network":       {kind: "bwrap", want: variables(gradle)},
		"other options of Gradle":           {kind: "cx43", env: map[string]string{"GRADLE_OPTS": "-Xmx2g"}, want: variables(gradle + " -Xmx2g")},
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
