package setup_test

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/setup"
)

// fakeSystemctl returns a systemctl that starts a fake errand at an address, and records its calls.
func (o *office) fakeSystemctl(address string, calls *[]string) func(context.Context, ...string) error {
	active := errors.New("inactive")
	return func(_ context.Context, args ...string) error {
		*calls = append(*calls, strings.Join(args, " "))
		switch args[0] {
		case "is-active":
			return active
		case "restart":
			if active == nil {
				return nil // systemd keeps the port open
			}
			active = nil
		default:
			return nil
		}
		if _, err := os.Stat(o.path("errand.service")); err != nil {
			o.t.Errorf("the unit does not exist when it is started: %v", err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", "errand") }), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }()
		o.t.Cleanup(func() { _ = server.Close() })
		return nil
	}
}

// testStart checks that a service is started once, and proves then that webhooks arrive.
func testStart(t *testing.T) {
	t.Helper()
	o := newOffice(t)
	o.opts.Skip = []string{"repositories"}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	o.answers["listen"], o.answers["public_url"], o.answers["unit"] = address, "http://"+address, "start"
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "this host has no systemctl") {
		t.Errorf("without systemd: %v", err)
	}
	var calls []string
	o.env.Systemctl = o.fakeSystemctl(address, &calls)
	o.failed = []string{"github.deliveries"} // errand has not run before
	if os.Geteuid() != 0 {
		if err := o.run(); err != nil {
			t.Fatalf("%v\n%s", err, o.screen)
		}
		o.wantOutput("Only root can start it: sudo sh -c 'systemctl daemon-reload && systemctl enable --now errand.socket errand.service'", "errand is not running yet")
		if len(calls) > 0 {
			t.Errorf("without root systemctl was called: %v", calls)
		}
		return
	}
	for n := range 3 {
		if n == 2 {
			o.opts.Force, o.answers["label"] = true, "bot"
		}
		if err := o.run(); err != nil {
			t.Fatalf("%v\n%s", err, o.screen)
		}
		o.wantOutput("The setup is complete, and errand is running.", "arrived", "github.deliveries below is expected")
	}
	const isActive, socketActive = "is-active --quiet errand.service", "is-active --quiet errand.socket"
	want := []string{
		"daemon-reload", "enable errand.socket errand.service", "stop errand.service errand.socket", "restart errand.service", isActive, socketActive, isActive, socketActive,
		"daemon-reload", "enable errand.socket errand.service", "restart errand.service", isActive, socketActive, // a new configuration: the port stays open
	}
	if diff := gocmp.Diff(want, calls); diff != "" {
		t.Errorf("calls of systemctl (-want +got):\n%s", diff)
	}
	o.answers["label"] = "another"
	o.env.Systemctl = func(context.Context, ...string) error { return errors.New("Access denied") }
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "Access denied") || !strings.Contains(err.Error(), "systemctl restart errand.service` as root") {
		t.Errorf("systemctl fails: %v", err)
	}
}

// TestUnit checks that a unit is written on request, and that another one is kept.
func TestUnit(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.opts.Skip = []string{"installation", "webhook", "repositories"}
	o.answers["unit"], o.env.Program = "write", "/home/ada/errand/bin/errand"
	o.write("errand.service", "[Unit]\nDescription=mine\n")
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "exists and differs") {
		t.Errorf("another unit: %v", err)
	}
	o.wantOutput("A service may not be able to start /home/ada/errand/bin/errand: copy")
	o.env.Program = "/opt/errand/bin/errand"
	if _, err := os.Stat(o.path("errand.socket")); err == nil {
		t.Error("one unit was written without the other")
	}
	if err := os.Remove(o.path("errand.service")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := o.run(); err != nil {
			t.Fatal(err)
		}
	}
	o.wantOutput("is up to date")
	text, err := os.ReadFile(o.path("errand.service"))
	if err != nil || !strings.Contains(string(text), "\nExecStart=/opt/errand/bin/errand serve -c "+o.dir+"/config.yml\n") || !strings.Contains(string(text), "\nUser="+o.answers["user"]+"\n") ||
		!strings.Contains(string(text), "\nRequires=errand.socket\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err = os.ReadFile(o.path("errand.socket")); err != nil || !strings.Contains(string(text), "\nListenStream=127.0.0.1:1\n") {
		t.Errorf("%v\n%s", err, text)
	}
	o.write("errand.socket", "[Unit]\nDescription=mine\n")
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "errand.socket exists and differs") {
		t.Errorf("another socket: %v", err)
	}
	testStart(t)
}

// serviceOf is the configuration of the units in docs/deployment.md.
func serviceOf(provider string) config.Config {
	cfg := config.Default()
	cfg.Data, cfg.Provider = "/var/lib/errand", provider
	return cfg
}

// TestUnitsInDocumentation compares the units that setup writes with docs/deployment.md: for VMs, and with the replacement for sandboxes.
func TestUnitsInDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```ini\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != 3 {
		t.Fatalf("docs/deployment.md has %d units, want a socket, a service and what sandboxes need instead", len(blocks))
	}
	for provider, change := range map[string]func(string) string{
		config.ProviderHetzner: func(s string) string { return s },
		config.ProviderLocal: func(s string) string {
			before, rest, _ := strings.Cut(s, "# errand needs its data folder")
			_, after, _ := strings.Cut(rest, "SystemCallErrorNumber=EPERM\n")
			return before + blocks[2] + after
		},
	} {
		service, socket, err := setup.Units("errand", "/opt/errand/bin/errand", "/etc/errand/config.yml", serviceOf(provider))
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(blocks[0], socket); diff != "" {
			t.Errorf("%s: the socket (-docs/deployment.md +setup):\n%s", provider, diff)
		}
		if diff := gocmp.Diff(change(blocks[1]), service); diff != "" {
			t.Errorf("%s: the service (-docs/deployment.md +setup):\n%s", provider, diff)
		}
	}
}

// TestUnitsFitTheInstallation varies what the units depend on. systemd, where it is installed, understands each of them, and finds the hardened
// service hardly exposed.
func TestUnitsFitTheInstallation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program, file string
		change        func(*config.Config)
		service       []string // "-" before what it must not have
		socket        string
		err           string
	}{
		"as documented": {service: []string{"StateDirectory=errand", "ProtectHome=true", "TimeoutStopSec=40", "-ReadWritePaths", "-KillMode"}, socket: "127.0.0.1:8080"},
		"own folder": {
			change:  func(c *config.Config) { c.Data, c.Backup.Folder = "/srv/errand's data", "/var/backups/errand" },
			service: []string{`ReadWritePaths="/srv/errand's data"`, "ReadWritePaths=-/var/backups/errand", "-StateDirectory", `RequiresMountsFor="/srv/errand's data"`},
		},
		"in a home":   {file: "/home/ada/.config/errand/config.yml", service: []string{"ProtectHome=read-only"}},
		"sandboxes":   {change: func(c *config.Config) { c.Provider = config.ProviderLocal }, service: []string{"KillMode=process", "Delegate=yes", "-RestrictNamespaces", "-ProtectSystem"}},
		"own TLS":     {change: func(c *config.Config) { c.Listen = ":443" }, service: []string{"-AmbientCapabilities"}, socket: "443"},
		"named port":  {change: func(c *config.Config) { c.Listen = "localhost:https" }, socket: "127.0.0.1:443"},
		"IPv6":        {change: func(c *config.Config) { c.Listen = "[::1]:8080" }, socket: "[::1]:8080"},
		"slow end":    {change: func(c *config.Config) { c.Timing.Shutdown = 2 * time.Minute }, service: []string{"TimeoutStopSec=130"}},
		"a name":      {change: func(c *config.Config) { c.Listen = "errand.lan:8080" }, err: "write an IP address"},
		"no port":     {change: func(c *config.Config) { c.Listen = "127.0.0.1" }, err: "read the address listen"},
		"a specifier": {file: "/etc/%n/config.yml", err: "cannot be written in a systemd unit"},
		"a line":      {program: "/opt/errand\nUser=root", err: "cannot be written in a systemd unit"},
		"relative":    {change: func(c *config.Config) { c.Data = "errand-data" }, err: "write one that begins with /"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := serviceOf(config.ProviderHetzner)
			if c.change != nil {
				c.change(&cfg)
			}
			service, socket, err := setup.Units("daemon", cmp.Or(c.program, "/bin/true"), cmp.Or(c.file, "/etc/errand/config.yml"), cfg)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			for _, line := range c.service {
				if line, not := strings.CutPrefix(line, "-"); err != nil || strings.Contains(service, "\n"+line) == not {
					t.Errorf("%s, unwanted %v (%v):\n%s", line, not, err, service)
				}
			}
			if c.socket != "" && !strings.Contains(socket, "\nListenStream="+c.socket+"\n") {
				t.Errorf("want %s:\n%s", c.socket, socket)
			}
			verifyUnits(t, service, socket, cfg.Provider)
		})
	}
}

// verifyUnits has systemd check units, and judge how much of the host the service can reach: 0 is nothing, 100 everything.
func verifyUnits(t *testing.T, service, socket, provider string) {
	t.Helper()
	if !strings.Contains(service, "\nStartLimitIntervalSec=0\n") {
		t.Errorf("systemd gives up after five failed starts:\n%s", service)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("skipped: systemd-analyze is not installed, which checks the units of errand setup and of docs/deployment.md")
	}
	dir := t.TempDir()
	var files []string
	for name, text := range map[string]string{"errand.service": service, "errand.socket": socket} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), analyze, append([]string{"verify"}, files...)...).CombinedOutput()
	complaints := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
		return !strings.Contains(line, dir) || strings.Contains(line, "Unknown key 'DelegateSubgroup'") // systemd before 254
	})
	if err != nil || len(complaints) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	if provider == config.ProviderLocal {
		return // sandboxes need most of what the other service renounces
	}
	out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", filepath.Join(dir, "errand.service")).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
