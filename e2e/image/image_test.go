//go:build linux

package image

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/heavytest"
)

// owner is errand's user and group in the image. Folders of operators belong to it, so it never changes.
const owner = 10001

// end bounds the end of a container.
const end = 40 * time.Second

// requireRuntime skips the test where no container can be made and started.
func requireRuntime(t *testing.T) {
	t.Helper()
	var reason string
	for _, program := range []string{"mmdebstrap", "runc"} {
		if _, err := exec.LookPath(program); err != nil {
			reason = program + " is not installed"
		}
	}
	if os.Geteuid() != 0 {
		reason = "it needs root"
	} else if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		reason = "the kernel refuses namespaces: " + string(out)
	}
	switch {
	case reason == "":
	case os.Getenv(rootbox.Wanted) != "":
		t.Fatalf("the container image is required, but %s", reason)
	default:
		t.Skipf("SKIP: the container image is not tested: %s", reason)
	}
}

// TestHeavyImage builds the image, and starts errand in it as the compose file does.
func TestHeavyImage(t *testing.T) {
	heavytest.Mark(t)
	requireRuntime(t)
	s, _, _ := readCompose(t)
	a := readArchive(t, build(t))
	if got := a.ref["io.containerd.image.name"]; got != strings.Replace(s.Image, "VERSION", "v1.2.3", 1) {
		t.Errorf("the image is called %s, and %s in the compose file", got, s.Image)
	}
	checkConfig(t, s, a.config)
	root := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", root, "--numeric-owner", "-xpf", a.layer).CombinedOutput(); err != nil {
		t.Fatalf("unpack the layer: %v\n%s", err, out)
	}
	must(t, os.Chmod(root, 0o755))
	checkFiles(t, root)
	t.Run("serves", func(t *testing.T) { t.Parallel(); serves(t, s, a.config, root) })
	t.Run("refuses local sandboxes", func(t *testing.T) { t.Parallel(); refusesSandboxes(t, s, a.config, root) })
}

// build builds the image twice and compares the results.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, buildtest.Program(t.Context(), dir, "errand"))
	must(t, buildtest.Program(t.Context(), dir, "errand-runner"))
	runner, err := os.ReadFile(filepath.Join(dir, "errand-runner"))
	must(t, err)
	for _, arch := range []string{"amd64", "arm64"} { // only the names count here
		must(t, os.WriteFile(filepath.Join(dir, "errand-runner-linux-"+arch), runner, 0o600))
	}
	tool := filepath.Join(dir, "image")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tool, "../../internal/tools/image").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var both [2][]byte
	g, ctx := errgroup.WithContext(t.Context())
	for i := range both {
		g.Go(func() (err error) {
			out := filepath.Join(dir, string(rune('a'+i))+".oci.tar")
			cmd := exec.CommandContext(ctx, tool, "-programs", dir, "-arch", runtime.GOARCH, "-version", "v1.2.3", "-revision", "0123abc", "-time", "1764000000", "-o", out)
			if text, err := cmd.CombinedOutput(); err != nil {
				return errors.New(string(text))
			}
			both[i], err = os.ReadFile(out)
			return err
		})
	}
	must(t, g.Wait())
	if !bytes.Equal(both[0], both[1]) {
		t.Error("two builds of the image differ")
	}
	return filepath.Join(dir, "a.oci.tar")
}

// checkConfig compares the image's configuration with the compose file.
func checkConfig(t *testing.T, s service, c imageConfig) {
	t.Helper()
	if c.Architecture != runtime.GOARCH || c.OS != "linux" || c.Config.User != "10001:10001" || c.Config.StopSignal != "SIGTERM" || c.Created != "2025-11-24T16:00:00Z" {
		t.Errorf("configuration %+v", c)
	}
	for name, want := range map[string]string{"version": "v1.2.3", "revision": "0123abc", "created": c.Created, "licenses": "Apache-2.0"} {
		if got := c.Config.Labels["org.opencontainers.image."+name]; got != want {
			t.Errorf("label %s: got %q, want %q", name, got, want)
		}
	}
	for path := range c.Config.Volumes {
		if !strings.Contains(strings.Join(s.Volumes, " "), ":"+path) {
			t.Errorf("the compose file has no volume for %s", path)
		}
	}
	for port := range c.Config.ExposedPorts {
		if number, _, _ := strings.Cut(port, "/"); !strings.HasSuffix(strings.Join(s.Ports, " "), ":"+number) {
			t.Errorf("the compose file does not publish %s", port)
		}
	}
}

// checkFiles looks for what an image must not have.
func checkFiles(t *testing.T, root string) {
	t.Helper()
	for _, name := range []string{"etc/hostname", "etc/resolv.conf", "etc/machine-id", "etc/errand/config.yml", "dev/null"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("the image has %s", name)
		}
	}
	for problem, args := range map[string][]string{
		"programs that change their user":                            {"-type", "f", "-perm", "/6000"},
		"files that are newer than the image, so that builds differ": {"-newermt", "@1764000000"},
	} {
		out, err := exec.CommandContext(t.Context(), "find", append([]string{root, "-xdev"}, args...)...).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%v; %s:\n%s", err, problem, out)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")); err != nil || info.Size() < 100_000 {
		t.Errorf("no certificates of authorities: %v, %v", info, err)
	}
}

// serves starts errand, uses it from within as an operator would, and ends it.
func serves(t *testing.T, s service, c imageConfig, root string) {
	t.Helper()
	w, data, backups := newWorld(t, owner, "provider: hetzner"), folder(t, owner), folder(t, owner)
	errand := runContainer(t, "serves", runtimeSpec(s, c, root, map[string]string{"./etc": w.etc, "data": data, "./backups": backups}))
	if !isReady(t, "http://"+w.listen+"/readyz") {
		_ = errand.wait(0)
		t.Fatalf("errand is not ready\n%s", errand.log.String())
	}
	for _, one := range []struct {
		args []string
		want string
	}{
		{s.Healthcheck.Test[1:], "0 open tasks"},
		{[]string{"errand", "doctor"}, ""},
		{[]string{"errand", "backup", "-o", "/var/backups/one.tar.zst"}, ""},
		{[]string{"git", "--version"}, "git version 2."},
		{[]string{"sh", "-c", "cd /tmp && git init -q x && cd x && git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m x && git log --format=%s"}, "x"},
		{[]string{"id", "-u"}, "10001"},
		{[]string{"sh", "-c", "touch /opt/errand/bin/x || touch /etc/errand/x || grep CapEff /proc/self/status"}, "0000000000000000"},
	} {
		if out, err := errand.exec(one.args...); err != nil || !strings.Contains(out, one.want) {
			t.Errorf("%q: %v, want %q:\n%s", one.args, err, one.want, out)
		}
	}
	if out, err := errand.runc(t.Context(), "kill", errand.id, "TERM").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	err := errand.wait(end)
	if log := errand.log.String(); err != nil || !strings.Contains(log, "errand stopped") {
		t.Errorf("SIGTERM: %v\n%s", err, log)
	}
	for _, file := range []string{filepath.Join(data, "errand.db"), filepath.Join(backups, "one.tar.zst")} {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
}

// isReady waits until errand knows GitHub.
func isReady(t *testing.T, url string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		must(t, err)
		if resp, err := webtest.Client().Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
		}
	}
}

// refusesSandboxes starts errand with provider: local, and errand doctor.
func refusesSandboxes(t *testing.T, s service, c imageConfig, root string) {
	t.Helper()
	w := newWorld(t, owner, "provider: local")
	for id, one := range map[string]struct {
		args []string
		want string
	}{
		"refuses": {nil, "provider: local cannot isolate agents in this container"},
		"doctor":  {[]string{"doctor"}, "This container cannot isolate agents."},
	} {
		errand := runContainer(t, id, runtimeSpec(s, c, root, map[string]string{"./etc": w.etc, "data": folder(t, owner), "./backups": folder(t, owner)}, one.args...))
		err := errand.wait(end)
		if log := errand.log.String(); errand.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log, one.want) {
			t.Errorf("%s: %v, want %q:\n%s", id, err, one.want, log)
		}
	}
}
