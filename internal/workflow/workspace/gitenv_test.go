package workspace

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestInsteadOf asks git itself for the address from which it would fetch submodules.
func TestInsteadOf(t *testing.T) {
	t.Parallel()
	r := state.Repo{Owner: "acme", Name: "app", URL: "https://github.example/acme/app"}
	var config []string
	for _, pattern := range []string{"acme/lib", "vendor/*"} {
		for _, kv := range insteadOf(r, "http://127.0.0.1:9413", pattern) {
			config = append(config, "-c", kv[0]+"="+kv[1])
		}
	}
	for url, want := range map[string]string{
		"https://github.example/acme/lib.git":      "http://127.0.0.1:9413/git/acme/lib.git",
		"git@github.example:acme/lib":              "http://127.0.0.1:9413/git/acme/lib",
		"ssh://git@github.example/vendor/x.git":    "http://127.0.0.1:9413/git/vendor/x.git",
		"https://github.example/acme/secret.git":   "https://github.example/acme/secret.git",
		"https://elsewhere.example/acme/lib.git":   "https://elsewhere.example/acme/lib.git",
		"http://127.0.0.1:9413/git/acme/lib.git":   "http://127.0.0.1:9413/git/acme/lib.git",
		"https://github.example/vendored/acme/lib": "https://github.example/vendored/acme/lib",
	} {
		out, err := exec.Command("git", append(config, "ls-remote", "--get-url", url)...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("got %[2]s (%[3]v) as the address of %[1]s, want %[4]s", url, got, err, want)
		}
	}
	if got := insteadOf(state.Repo{Owner: "acme", Name: "app"}, "http://x", "acme/lib"); got != nil {
		t.Errorf("without an address: got %v", got)
	}
}
