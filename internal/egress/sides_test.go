package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestEntryAllowsNoSimilarHost: an entry allows its own host and port and no similar ones.
func TestEntryAllowsNoSimilarHost(t *testing.T) {
	t.Parallel()
	p := Policy{Allow: []string{"registry.test:8080", "*.below.test", "*.port.test:8443", "plain.test"}}
	for at, want := range map[string]bool{
		"registry.test:8080": true, "registry.test:443": false, "registry.test:80": false, "registry.test:80800": false, "x.registry.test:8080": false,
		"a.below.test:443": true, "a.b.below.test:80": true, "below.test:443": false, "evilbelow.test:443": false, "below.test.evil.test:443": false, "a.below.test:8443": false,
		"a.port.test:8443": true, "a.port.test:443": false, "port.test:8443": false,
		"plain.test:443": true, "plain.test:80": true, "plain.test:8080": false, "plain.test:4430": false, "explain.test:443": false, "plain.tests:443": false,
	} {
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check(host, port); (err == nil) != want {
			t.Errorf("%s: %v, want it let through: %v", at, err, want)
		}
	}
}

// TestGroupsKeepTheirOrder: groups and hosts can be mixed in any order, and the order is kept.
func TestGroupsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	want := []string{"proxy.golang.org", "sum.golang.org", "a.test", "registry.npmjs.org", "registry.yarnpkg.com", "b.test"}
	if diff := cmp.Diff(want, Hosts([]string{"go", "a.test", "npm", "b.test"})); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	for host, group := range map[string]string{"sum.golang.org": "go", "files.pythonhosted.org": "python", "static.crates.io": "rust"} {
		if err := (Policy{Allow: Hosts([]string{"npm"})}).check(host, "443"); err == nil || !strings.Contains(err.Error(), "or the group "+group+",") {
			t.Errorf("%s: %v, want the group %s to be named", host, err, group)
		}
	}
}

// TestConnectionLimitIsPerVM: a VM that has used its connections takes none from another VM, and each released one can be
// used once.
func TestConnectionLimitIsPerVM(t *testing.T) {
	t.Parallel()
	p := New(Config{})
	var release []func()
	enter := func(vm string) bool {
		free, err := p.enter(vm)
		if err == nil && vm == "vm-1" {
			release = append(release, free)
		}
		return err == nil
	}
	for n := range maxOpen {
		if !enter("vm-1") {
			t.Fatalf("the first VM has %d connections, want %d", n, maxOpen)
		}
	}
	if enter("vm-1") {
		t.Error("the first VM got one connection too many")
	}
	if !enter("vm-2") {
		t.Error("the second VM got no connection because the first has used its own")
	}
	release[0]()
	if !enter("vm-1") || enter("vm-1") {
		t.Error("a released connection cannot be used exactly once")
	}
	for _, free := range release[1:] {
		free()
	}
	if p.open["vm-1"] != 0 || p.open["vm-2"] != 1 {
		t.Errorf("open connections at the end: %v", p.open)
	}
}

// TestAllAddressesAreChecked: all addresses are checked, in any order, and an address that does not respond is skipped.
func TestAllAddressesAreChecked(t *testing.T) {
	t.Parallel()
	const first, second = "93.184.215.14", "2606:2800:21f::1"
	var dialed []string
	p := New(Config{
		Resolver: names{
			"two.test": {first, second}, "own.test": {first, "93.184.215.40"}, "own6.test": {second, "2606:2800:21f::40"}, "first.test": {"93.184.215.40", first},
			"inside.test": {first, "10.0.0.1"}, "metadata.test": {"169.254.169.254", first},
		},
		OwnAddresses: func() ([]net.Addr, error) {
			return []net.Addr{&net.UnixAddr{Name: "none"}, &net.IPNet{IP: net.ParseIP("93.184.215.40")}, &net.IPNet{IP: net.ParseIP("2606:2800:21f::40")}}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			return nil, errors.New("refused")
		},
	})
	for host, why := range map[string]string{
		"own.test": "errand's own host", "own6.test": "errand's own host", "first.test": "errand's own host", "inside.test": "not public", "metadata.test": "not public",
	} {
		if _, err := p.lookUp(t.Context(), host); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", host, err, why)
		}
	}
	list, err := p.lookUp(t.Context(), "two.test")
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if _, err := p.dial(t.Context(), []netip.Addr{list[0], list[1]}, "8443"); err == nil {
		t.Error("no address responded, but no error was returned")
	}
	if diff := cmp.Diff([]string{first + ":8443", "[" + second + "]:8443"}, dialed); diff != "" {
		t.Errorf("dialed (-want +got):\n%s", diff)
	}
}

// TestHostHeaderIsIgnored: a request goes to the checked host with that host's name, whatever its Host header.
func TestHostHeaderIsIgnored(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"http://registry.test/": "for registry.test ", "http://registry.test:8080/": "for registry.test:8080 "} {
		w := newWorld(t, "registry.test", "registry.test:8080")
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.proxy.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(soon)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET "+address+" HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(answer), want) {
			t.Errorf("%s was asked %q, %v, want %q", address, answer, err, want)
		}
		_ = conn.Close()
	}
}

// TestLogsAreSeparate: tasks share neither requests, nor older files, nor ages.
func TestLogsAreSeparate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	tasks := []string{"7-1", "7-11", "77-1"}
	for _, host := range []string{"first", "second"} { // each fills its file and starts another one
		for _, task := range tasks {
			if err := l.Add(task, Request{Host: host + "." + task + ".test"}); err != nil {
				t.Fatal(err)
			}
			if err := full(filepath.Join(dir, task+".jsonl")); host == "first" && err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, task := range tasks {
		list, all, err := l.Last(task, 5)
		if err != nil {
			t.Fatal(err)
		}
		var hosts []string
		for _, r := range list {
			hosts = append(hosts, r.Host)
		}
		if diff := cmp.Diff([]string{"first." + task + ".test", "second." + task + ".test"}, hosts); diff != "" || all != 2 {
			t.Errorf("task %s has %d (-want +got):\n%s", task, all, diff)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"7-1.jsonl", "7-1.jsonl.old"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Prune(old.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for task, want := range map[string]int{"7-1": 0, "7-11": 2, "77-1": 2} {
		if _, all, err := l.Last(task, 5); err != nil || all != want {
			t.Errorf("after pruning task %s has %d requests, %v, want %d", task, all, err, want)
		}
	}
}

// full fills a log with irrelevant lines.
func full(name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Repeat("\n", maxLog))
	return errors.Join(err, f.Close())
}

// TestLongRequestHidesNoOther: a very long request is stored cut, and the requests before and after it stay readable.
func TestLongRequestHidesNoOther(t *testing.T) {
	t.Parallel()
	l, err := OpenLog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Request{
		{Method: "GET", Host: "before.test"},
		{Method: strings.Repeat("M", 500_000), Host: strings.Repeat("ü", 250_000) + ".test", Port: strings.Repeat("4", 500_000), Reason: strings.Repeat("because ", 60_000)},
		{Method: "GET", Host: "after.test"},
	} {
		if err := l.Add("7-1", r); err != nil {
			t.Fatal(err)
		}
	}
	list, all, err := l.Last("7-1", 5)
	if err != nil || all != 3 || len(list) != 3 || list[0].Host != "before.test" || list[2].Host != "after.test" {
		t.Fatalf("%d requests of %d, %v", len(list), all, err)
	}
	long := list[1]
	if n := len(long.Method) + len(long.Host) + len(long.Port) + len(long.Reason); n > 3000 || !utf8.ValidString(long.Host) || !strings.HasPrefix(long.Reason, "because because") {
		t.Errorf("the long request takes %d bytes: %.100q", n, long.Reason)
	}
}

// TestLongLineOfOlderLogHidesNoOther: older versions stored long requests uncut.
func TestLongLineOfOlderLogHidesNoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "7-1.jsonl"), []byte(`{"host":"`+strings.Repeat("x", 100_000)+`"}`+"\n"+`{"host":"after.test"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, all, err := l.Last("7-1", 5); err != nil || all != 2 || list[1].Host != "after.test" {
		t.Errorf("%d requests of %d, %v", len(list), all, err)
	}
}
