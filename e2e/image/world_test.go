//go:build linux

package image

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// world has simulators, and the folder with the configuration of an errand that uses them.
type world struct {
	etc    string
	listen string
}

// newWorld starts simulators and writes the configuration. more is appended to it.
func newWorld(t *testing.T, owner int, more string) world {
	t.Helper()
	github, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key(), Record: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { _ = github.Close() })
	address, err := github.Start("127.0.0.1:0")
	must(t, err)
	hooks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hooks.Close)
	github.SetWebhook(hooks.URL, "hook-secret-for-tests")
	_, err = github.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "shop", Files: map[string]string{"README.md": "x"}, Collaborators: map[string]simgithub.Role{"worker": simgithub.RoleTriage}})
	must(t, err)
	must(t, github.WaitHooks(t.Context()))
	github.SetWebhook("https://errand.example.org/api/github/hook", "")
	models := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "model-key-for-tests" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(models.Close)
	hetzner := simhetzner.New(simhetzner.Config{Token: "the-token-of-a-project", Took: simhetzner.Scaled(1000)})
	t.Cleanup(hetzner.Close)
	cloud, err := hetzner.Start("127.0.0.1:0")
	must(t, err)
	app, w := github.App(), world{etc: t.TempDir(), listen: freeAddress(t)}
	for name, text := range map[string]string{
		"app.pem": string(app.PEM), "hook": "hook-secret-for-tests", "admin": "admin-token-for-tests", "model": "model-key-for-tests", "hcloud": "the-token-of-a-project",
		"config.yml": fmt.Sprintf(`listen: %s
data: /var/lib/errand
public_url: https://errand.example.org
github: {app_id: %d, private_key: 'file:/etc/errand/app.pem', webhook_secret: 'file:/etc/errand/hook', url: '%s'}
trigger: {assignee: worker}
admin: {token: 'file:/etc/errand/admin'}
models: {anthropic: {url: '%s', key: 'file:/etc/errand/model'}}
hetzner: {token: 'file:/etc/errand/hcloud', endpoint: '%s', ssh_from: [192.0.2.1/32], setup: 'true'}
%s
`, w.listen, app.ID, address, models.URL, cloud, more),
	} {
		must(t, os.WriteFile(filepath.Join(w.etc, name), []byte(text), 0o400))
		must(t, os.Chown(filepath.Join(w.etc, name), owner, owner))
	}
	must(t, os.Chown(w.etc, owner, owner))
	return w
}

// freeAddress returns an address that nobody uses now. It is not 127.0.0.1, whose ports others may be given meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), rand.N(256), 1+rand.N(254)))
	must(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// folder returns a new folder that belongs to a user.
func folder(t *testing.T, owner int) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	must(t, os.Chown(dir, owner, owner))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
