package tether_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
)

// everywhere resolves every name to the same public address.
type everywhere struct{}

func (everywhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

// TestOtherHosts: a VM reaches allowed hosts with its run's token, and each request is reported.
func TestOtherHosts(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+r.Header.Get("Proxy-Authorization")+r.Header.Get("Authorization"))
	}))
	defer up.Close()
	task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: 1}, TaskRuns: state.TaskRuns{Run: &state.Run{ID: "7-1-2", Kind: state.RunCheck, State: state.RunActive, RunLaunch: state.RunLaunch{VM: "vm-1"}}}}
	told := make(chan egress.Request, 10)
	cfg := tether.Config{
		Tasks: singleTask{task}, Key: []byte("0123456789abcdef0123456789abcdef"), Log: zerolog.Nop(),
		Egress: egress.New(egress.Config{Resolver: everywhere{}, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, up.Listener.Addr().String())
		}}),
		EgressPolicy: func(*state.Task) egress.Policy { return egress.Policy{Allow: []string{"registry.test"}} },
		EgressDone:   func(_ *state.Task, r egress.Request) { told <- r },
	}
	h := tether.New(cfg)
	shut := tether.New(tether.Config{Tasks: cfg.Tasks, Key: cfg.Key, Log: cfg.Log})
	resting := cfg
	resting.Tasks = singleTask{&state.Task{Key: task.Key}}
	idle := tether.New(resting)
	for name, c := range map[string]struct {
		handler      *tether.Handler
		token, host  string
		status       int
		body, reason string
	}{
		"allowed":         {handler: h, token: h.RunToken("7-1-2"), host: "registry.test", status: 200, body: "registry.test"},
		"the VM's token":  {handler: h, token: h.VMToken("vm-1"), host: "registry.test", status: 407, body: "not this run's"},
		"not listed":      {handler: h, token: h.RunToken("7-1-2"), host: "other.test", status: 403, body: "not on the list", reason: "not on the list"},
		"another run":     {handler: h, token: h.RunToken("7-1-1"), host: "registry.test", status: 407, body: "not this run's"},
		"between runs":    {handler: idle, token: h.RunToken("7-1-2"), host: "registry.test", status: 407, body: "not this run's"},
		"no proxy":        {handler: shut, token: h.RunToken("7-1-2"), host: "registry.test", status: 403, body: "no other hosts"},
		"metadata":        {handler: h, token: h.RunToken("7-1-2"), host: "169.254.169.254", status: 403, body: "is an address", reason: "is an address"},
		"a path with /..": {handler: h, token: h.RunToken("7-1-2"), host: "registry.test/../x", status: 400, body: "must not contain"},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := httptest.NewServer(c.handler.For(tether.Peer{VM: "vm-1", Task: task.Key}))
			defer proxy.Close()
			at, err := url.Parse(proxy.URL)
			if err != nil {
				t.Fatal(err)
			}
			at.User = url.UserPassword("run", c.token)
			client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at), DisableKeepAlives: true}}
			res, err := client.Get("http://" + c.host)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != c.status || !strings.Contains(string(body), c.body) {
				t.Fatalf("%d %q, %v", res.StatusCode, body, err)
			}
			if c.status != 200 && c.reason == "" {
				return
			}
			if r := <-told; r.Allowed != (c.status == 200) || !strings.Contains(r.Reason, c.reason) {
				t.Errorf("reported %+v", r)
			}
		})
	}
}
