package browser

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/setup/setuptest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/web"
)

// arrival is somebody who sets up errand in a browser, for a GitHub Enterprise Server.
type arrival struct {
	t       *testing.T
	b       *tab
	github  *simgithub.Sim
	base    string // GitHub's address
	models  string
	address string // errand's, as HOST:PORT
	dir     string
	screen  *setuptest.Screen
	command *exec.Cmd
}

const (
	setupModelKey = "model-key-for-tests"
	setupPage     = "main .guide"
)

// TestHeavySetupByClicks sets up errand with the program as it is released, by clicks and keys only: the questions with mistakes, the App
// on GitHub, its installation, and what follows. The errand that the last page names runs then, and gets GitHub's first webhook.
func TestHeavySetupByClicks(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	a := &arrival{t: t, b: newBrowser(t), dir: t.TempDir(), screen: &setuptest.Screen{}}
	a.prepare()
	began := time.Now()
	a.start()
	for _, step := range []struct {
		name string
		play func()
	}{
		{"address", a.answerAddress}, {"trigger", a.answerTrigger}, {"model", a.answerModel}, {"VMs", a.answerVMs}, {"App", a.createApp},
		{"installation", a.install}, {"service", a.answerService}, {"checks", a.checks}, {"first end", a.firstEnd}, {"webhook", a.webhook}, {"end", a.end},
	} {
		step.play()
		a.b.clean()
		if t.Failed() {
			t.Fatalf("after the step %q\n%s", step.name, a.screen)
		}
		t.Logf("%5.1f s  %s", time.Since(began).Seconds(), step.name)
	}
}

// prepare starts GitHub without errand's App, and a model.
func (a *arrival) prepare() {
	a.t.Helper()
	for _, name := range []string{"errand", "errand-runner"} {
		check(a.t, buildtest.Program(a.t.Context(), a.dir, name))
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(a.t, err)
	a.github, err = simgithub.New(simgithub.Config{Dir: filepath.Join(a.dir, "github"), Key: key, AppSlug: "another", Pages: web.Handler, Record: a.t.TempDir()})
	check(a.t, err)
	a.t.Cleanup(func() { _ = a.github.Close() })
	a.base, err = a.github.Start("127.0.0.1:0")
	check(a.t, err)
	a.github.AddOrg("acme")
	_, err = a.github.SeedRepo(simgithub.RepoSeed{
		Owner: "acme", Name: "shop", Files: map[string]string{"README.md": "x"},
		Collaborators: map[string]simgithub.Role{"ada": simgithub.RoleAdmin, "worker": simgithub.RoleTriage},
	})
	check(a.t, err)
	models := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != setupModelKey {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	a.t.Cleanup(models.Close)
	a.models = models.URL
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(a.t, err)
	a.address = free.Addr().String()
	check(a.t, free.Close())
}

// run starts errand's program, which the test interrupts at its end.
func (a *arrival) run(args ...string) *exec.Cmd {
	a.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.t.Context()))
	cmd := exec.CommandContext(ctx, filepath.Join(a.dir, "errand"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Stdout, cmd.Stderr = a.screen, a.screen
	check(a.t, cmd.Start())
	a.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it may have ended
	})
	return cmd
}

// start opens the page of a setup.
func (a *arrival) start() {
	a.t.Helper()
	a.command = a.run("setup", "--web", "--dir", a.made(""))
	ctx, stop := context.WithTimeout(a.t.Context(), patience)
	defer stop()
	a.b.open(a.screen.Await(ctx, setuptest.NextPage), 200)
	a.b.reads("How GitHub and people reach errand")
}

// made returns the path of a file that the setup makes.
func (a *arrival) made(name string) string { return filepath.Join(a.dir, "made", name) }

func (a *arrival) field(key, text string) {
	a.t.Helper()
	a.b.await("the field "+key, "document.getElementById("+quote(key)+")")
	label := must[string](a.b, "flat(document.getElementById("+quote(key)+").labels[0].textContent)")
	if must[string](a.b, "document.getElementById("+quote(key)+").tagName") == "SELECT" {
		a.b.choose(thing{Name: label}, text)
		return
	}
	a.b.write(thing{Name: label}, text)
}

// press presses a button of the page.
func (a *arrival) press(name string) {
	a.t.Helper()
	a.b.click(thing{Kind: "button", Name: name, In: setupPage})
}

// look judges the page, opened by its address, and loads it again.
func (a *arrival) look(name string) {
	a.t.Helper()
	address := must[string](a.b, "location.href")
	a.b.open(address, 200)
	a.b.judge("setup-" + name)
	a.b.open(address, 200)
}

func (a *arrival) answerAddress() {
	a.look("questions")
	a.field("github", a.base)
	a.field("public_url", "http://example.org/errand")
	a.field("listen", a.address)
	a.press("Continue")
	a.b.reads("without a path")
	a.look("mistake")
	a.field("public_url", "http://"+a.address)
	a.b.keys("\r")
}

func (a *arrival) answerTrigger() {
	a.b.reads("Login of the machine user")
	a.field("assignee", "worker")
	a.press("Continue")
}

func (a *arrival) answerModel() {
	a.b.reads("Address of the model provider's API")
	a.field("model_url", a.models)
	a.field("model_key", "wrong-key")
	a.press("Continue")
	a.b.reads("the provider refuses the key")
	if text := must[string](a.b, "document.documentElement.outerHTML"); strings.Contains(text, "wrong-key") {
		a.t.Errorf("the page shows a secret:\n%s", text)
	}
	a.field("model_key", setupModelKey)
	a.press("Continue")
}

func (a *arrival) answerVMs() {
	a.b.reads("Where agents work:")
	a.field("agent_program", "present")
	a.press("Continue")
	a.b.reads("Name of the App")
	a.press("Change earlier answers")
	a.b.reads("Address of GitHub, or of your Enterprise Server")
	if got := must[string](a.b, "document.getElementById('public_url').value"); got != "http://"+a.address {
		a.t.Errorf("the earlier answer is %q", got)
	}
	for _, next := range []string{"Login of the machine user", "Address of the model provider's API", "How the agent's program gets where agents work", "Name of the App"} {
		a.press("Continue")
		a.b.reads(next)
	}
}

func (a *arrival) createApp() {
	a.field("app_name", "errand of acme")
	a.field("organization", "acme")
	a.press("Continue")
	a.b.reads("GitHub shows the App's name, which you can change")
	a.look("app")
	other := a.b.another()
	other.open(must[string](a.b, "location.href"), 200) // a second tab does no harm
	other.reads("GitHub shows the App's name")
	a.b.front()
	a.press("Create the GitHub App")
	a.b.reads("acme")
	a.b.click(thing{Kind: "button", Name: "Create"})
	a.b.reads("The App's installation")
	other.front()
	other.reads("The App's installation") // without a reload by hand
	other.clean()
	a.b.front()
}

func (a *arrival) install() {
	a.b.reads("Install the App on your repositories")
	a.look("installation")
	page := must[string](a.b, "[...document.querySelectorAll('a')].find((e) => e.href.endsWith('/installations/new')).href")
	github := a.b.another()
	github.open(page, 200)
	github.click(thing{Kind: "field", Name: "acme/shop"})
	github.click(thing{Kind: "button", Name: "Install"})
	github.clean()
	a.b.front()
	a.b.reads("Create the label in the repositories")
	a.press("Continue")
}

func (a *arrival) answerService() {
	a.b.reads("User of this host that runs errand")
	a.press("Continue")
	a.b.reads("systemd units: start")
	a.press("Continue")
}

// checks skips the checks: this host has no agent's program, which is the only failure.
func (a *arrival) checks() {
	a.b.reads("correct this as described above, and choose Try again")
	a.look("failed")
	const form = "document.querySelector('main input[name=id]')?.value"
	first := must[string](a.b, form)
	a.press("Try again")
	a.b.await("the second failure", form+" !== "+quote(first)+" && document.title.startsWith('Failed')")
	a.press("Skip this step")
}

func (a *arrival) firstEnd() {
	a.b.reads("The setup is complete. Start errand:")
	a.look("end")
	start := regexp.MustCompile(`(?m)^  (\S+) serve -c (\S+)$`).FindStringSubmatch(must[string](a.b, "document.querySelector('.message').textContent"))
	if start == nil || start[1] != filepath.Join(a.dir, "errand") {
		a.t.Fatalf("the page does not say how to start errand: %q", start)
	}
	a.run("serve", "-c", start[2])
}

// webhook repeats the setup while errand runs: GitHub sends its first webhook again.
func (a *arrival) webhook() {
	for end := time.Now().Add(patience); ; pause(a.t.Context()) {
		resp, err := webtest.Client().Get("http://" + a.address + "/readyz")
		if err == nil {
			check(a.t, resp.Body.Close())
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(end) {
			a.t.Fatalf("errand does not answer: %v\n%s", err, a.screen)
		}
	}
	a.press("Run the setup again")
	a.b.reads("Create the label in the repositories")
	a.press("Continue")
	a.answerService()
	a.b.reads("choose Try again")
	a.press("Skip this step")
	a.b.reads("The setup is complete")
	a.b.reads("and it arrived.")
}

func (a *arrival) end() {
	a.press("Close the setup")
	a.b.reads("You can close this page.")
	if err := a.command.Wait(); err != nil {
		a.t.Errorf("the setup ended with %v", err)
	}
	token, err := os.ReadFile(a.made("admin-token"))
	check(a.t, err)
	a.b.open("http://"+a.address+"/status", 401)
	a.b.write(thing{Name: "Admin token"}, strings.TrimSpace(string(token)))
	a.b.click(thing{Kind: "button", Name: "Log in"})
	a.b.reads("No open tasks")
}
