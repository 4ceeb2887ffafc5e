package setup_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/setup"
)

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
	active := errors.New("inactive")
	o.env.Systemctl = func(_ context.Context, args ...string) error {
		calls = append(calls, strings.Join(args, " "))
		switch args[0] {
		case "is-active":
			return active
		case "restart":
			active = nil
		default:
			return nil
		}
		if _, err := os.Stat(o.path("errand.service")); err != nil {
			t.Errorf("the unit does not exist when it is started: %v", err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server", "errand") }), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
		return nil
	}
	o.failed = []string{"github.deliveries"} // errand has not run before
	if os.Geteuid() != 0 {
		if err := o.run(); err != nil {
			t.Fatalf("%v\n%s", err, o.screen)
		}
		o.wantOutput("Only root can start it: sudo systemctl daemon-reload", "errand is not running yet")
		if len(calls) > 0 {
			t.Errorf("without root systemctl was called: %v", calls)
		}
		return
	}
	for range 2 {
		if err := o.run(); err != nil {
			t.Fatalf("%v\n%s", err, o.screen)
		}
		o.wantOutput("The setup is complete, and errand is running.", "arrived", "github.deliveries below is expected")
	}
	const isActive = "is-active --quiet errand"
	if diff := cmp.Diff([]string{"daemon-reload", "enable errand", "restart errand", isActive, isActive}, calls); diff != "" {
		t.Errorf("calls of systemctl (-want +got):\n%s", diff)
	}
	o.opts.Force = true
	o.env.Systemctl = func(context.Context, ...string) error { return errors.New("Access denied") }
	if err := o.run(); err == nil || !strings.Contains(err.Error(), "Access denied") || !strings.Contains(err.Error(), "systemctl restart errand` as root") {
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
	if err != nil || !strings.Contains(string(text), "\nExecStart=/opt/errand/bin/errand serve -c "+o.dir+"/config.yml\n") || !strings.Contains(string(text), "\nUser="+o.answers["user"]+"\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := setup.Unit("errand", "/opt/errand", "/etc/%n/config.yml", ":8080"); err == nil {
		t.Error("a path with a specifier of systemd was accepted")
	}
	for listen, low := range map[string]bool{":443": true, "127.0.0.1:https": true, ":8080": false} {
		got, err := setup.Unit("errand", "/opt/errand/bin/errand", "/etc/errand/config.yml", listen)
		if err != nil || strings.Contains(got, "\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n") != low {
			t.Errorf("%s: %v\n%s", listen, err, got)
		}
	}
	testStart(t)
	manual, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, err := setup.Unit("errand", "/opt/errand/bin/errand", "/etc/errand/config.yml", "127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	if indented := "   " + strings.ReplaceAll(strings.TrimSpace(documented), "\n", "\n   "); !strings.Contains(strings.ReplaceAll(string(manual), "\n\n", "\n   \n"), indented) {
		t.Errorf("docs/install.md has another unit than:\n%s", documented)
	}
}
