package registries

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/runner/maven"
	"github.com/errand-bot/errand/internal/runner/roots"
)

const (
	token = "registry-token-0123456789"
	base  = "https://packages.test/repository"
)

// tarball is a package for npm.
func tarball(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for name, text := range map[string]string{
		"package/package.json": `{"name":"@acme/greeting","version":"1.0.0","main":"index.js"}`, "package/index.js": "module.exports = 'hello from npm'\n",
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, text) // the sizes below prove that it worked
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// archive is a zip archive: a Go module or a Python wheel.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// content returns the files of the registries by their paths.
func content(t *testing.T) map[string][]byte {
	t.Helper()
	tgz := tarball(t)
	sum := sha512.Sum512(tgz)
	about, err := json.Marshal(map[string]any{
		"name": "@acme/greeting", "dist-tags": map[string]string{"latest": "1.0.0"},
		"versions": map[string]any{"1.0.0": map[string]any{
			"name": "@acme/greeting", "version": "1.0.0", "main": "index.js",
			"dist": map[string]string{"tarball": base + "/npm/@acme/greeting/-/greeting-1.0.0.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const module = "module acme.test/greeting\n\ngo 1.21\n"
	return map[string][]byte{
		"/repository/npm/@acme/greeting":                          about,
		"/repository/npm/@acme/greeting/-/greeting-1.0.0.tgz":     tgz,
		"/repository/go/acme.test/greeting/@v/list":               []byte("v1.0.0\n"),
		"/repository/go/acme.test/greeting/@v/v1.0.0.info":        []byte(`{"Version":"v1.0.0"}`),
		"/repository/go/acme.test/greeting/@v/v1.0.0.mod":         []byte(module),
		"/repository/go/acme.test/greeting/@v/v1.0.0.zip":         archive(t, map[string]string{"acme.test/greeting@v1.0.0/go.mod": module, "acme.test/greeting@v1.0.0/g.go": "package greeting\n\nconst Text = \"hello from go\"\n"}),
		"/repository/pypi/simple/greeting/":                       []byte(`<!DOCTYPE html><html><body><a href="../../greeting-1.0.0-py3-none-any.whl">greeting-1.0.0-py3-none-any.whl</a></body></html>`),
		"/repository/pypi/greeting-1.0.0-py3-none-any.whl":        wheel(t),
		"/repository/maven/test/acme/greeting/1.0/greeting-1.0.x": []byte("hello from maven"),
		"/repository/maven/test/acme/parent/1.0/parent-1.0.pom": []byte(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
			<groupId>test.acme</groupId><artifactId>parent</artifactId><version>1.0</version><packaging>pom</packaging><description>hello from maven</description></project>`),
	}
}

// wheel is a package for pip.
func wheel(t *testing.T) []byte {
	t.Helper()
	return archive(t, map[string]string{
		"greeting.py":                       "print('hello from pypi')\n",
		"greeting-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0.0\n",
		"greeting-1.0.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: errand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"greeting-1.0.0.dist-info/RECORD":   "greeting.py,,\ngreeting-1.0.0.dist-info/METADATA,,\ngreeting-1.0.0.dist-info/WHEEL,,\ngreeting-1.0.0.dist-info/RECORD,,\n",
	})
}

// host is a host with private registries, behind errand's proxy.
type host struct {
	proxy *url.URL
	roots string // the folder of package roots

	mu       sync.Mutex
	requests []egress.Request
	unsigned []string      // paths that were asked for without the credential
	recorded chan struct{} // has an element after a request was recorded, which may be after the program ended
}

// downloaded reports whether a download from the registry is recorded. It waits for the record.
func (h *host) downloaded() bool {
	timeout := time.After(time.Minute)
	for {
		h.mu.Lock()
		found := slices.ContainsFunc(h.requests, func(r egress.Request) bool {
			return r.Allowed && r.Host == "packages.test" && r.Path != "" && r.Received > 0
		})
		h.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-h.recorded:
		case <-timeout:
			return false
		}
	}
}

func newHost(t *testing.T) *host {
	t.Helper()
	h, files := &host{roots: t.TempDir(), recorded: make(chan struct{}, 1)}, content(t)
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			h.mu.Lock()
			h.unsigned = append(h.unsigned, r.URL.Path)
			h.mu.Unlock()
			http.Error(w, "sign in", http.StatusUnauthorized)
			return
		}
		data, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/") {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(upstream.Close)
	transport := upstream.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.ServerName = "example.com" // httptest's certificate
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, upstream.Listener.Addr().String())
	}
	authority, err := egress.NewAuthority([]byte(strings.Repeat("s", 32)), []string{"packages.test"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	policy := egress.Policy{Registries: []egress.Registry{{Name: "all", URL: at, Header: "Authorization", Value: "Bearer " + token}}}
	proxy := egress.New(egress.Config{Authority: authority, Upstream: transport})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.Serve(w, r, "vm-1", policy, func(r egress.Request) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.requests = append(h.requests, r)
			select {
			case h.recorded <- struct{}{}:
			default:
			}
		})
	}))
	t.Cleanup(server.Close)
	if h.proxy, err = url.Parse(server.URL); err != nil {
		t.Fatal(err)
	}
	h.proxy.User = url.UserPassword("run", "run-token")
	if err := roots.Install(roots.Spec{Dir: h.roots, Authority: authority.PEM()}); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs a program as a run on a VM does, with its home in a folder.
func (h *host) run(t *testing.T, dir string, extra []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "npm_config_globalconfig=" + os.DevNull}, extra...)
	for name, value := range roots.Environment(h.roots) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		cmd.Env = append(cmd.Env, name+"="+h.proxy.String())
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		t.Fatalf("%s %v: %v\n%s\nrequests: %+v", name, args, err, out, h.requests)
	}
	return string(out)
}

// needs skips the test if a program is not installed.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed: whether it reads from private registries is not tried", program)
	}
	return path
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPackageManagers: package managers install a private package with nothing but the registry's address, as it is in a repository.
func TestPackageManagers(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(t *testing.T, h *host, dir string) string{
		"go": func(t *testing.T, h *host, dir string) string {
			write(t, dir, "go.mod", "module x\n\ngo 1.21\n\nrequire acme.test/greeting v1.0.0\n")
			write(t, dir, "main.go", "package main\n\nimport \"acme.test/greeting\"\n\nfunc main() { print(greeting.Text) }\n")
			env := []string{"GOPROXY=" + base + "/go", "GONOSUMDB=acme.test", "GOFLAGS=-modcacherw -mod=mod", "GOCACHE=" + t.TempDir(), "GOPATH=" + t.TempDir(), "GOTOOLCHAIN=local"}
			h.run(t, dir, env, "go", "mod", "download", "acme.test/greeting")
			return h.run(t, dir, env, "go", "list", "-m", "-f", "hello from {{.Path}}{{.Version}} go", "acme.test/greeting")
		},
		"npm": func(t *testing.T, h *host, dir string) string {
			needs(t, "npm")
			write(t, dir, "package.json", `{"name":"x","version":"1.0.0","dependencies":{"@acme/greeting":"^1.0.0"}}`)
			write(t, dir, ".npmrc", "@acme:registry="+base+"/npm/\nfetch-retries=0\naudit=false\n")
			h.run(t, dir, nil, "npm", "install")
			lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
			if err != nil || !strings.Contains(string(lock), base+"/npm/@acme/greeting/-/greeting-1.0.0.tgz") {
				t.Errorf("the lock file does not name the registry: %v\n%s", err, lock)
			}
			h.run(t, dir, nil, "npm", "ci")
			return h.run(t, dir, nil, "node", "-e", "console.log(require('@acme/greeting'))")
		},
		"pypi": func(t *testing.T, h *host, dir string) string {
			python := needs(t, "python3")
			if err := exec.CommandContext(t.Context(), python, "-m", "pip", "--version").Run(); err != nil {
				t.Skip("pip is not installed: whether it reads from private registries is not tried")
			}
			h.run(t, dir, nil, python, "-m", "pip", "install", "-q", "--target", "lib", "--index-url", base+"/pypi/simple", "greeting")
			return h.run(t, dir, []string{"PYTHONPATH=lib"}, python, "-c", "import greeting")
		},
		"maven": func(t *testing.T, h *host, dir string) string {
			needs(t, "mvn")
			write(t, dir, "pom.xml", `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
				<parent><groupId>test.acme</groupId><artifactId>parent</artifactId><version>1.0</version><relativePath/></parent>
				<artifactId>x</artifactId><packaging>pom</packaging>
				<repositories><repository><id>acme</id><url>`+base+`/maven</url></repository></repositories></project>`)
			env := []string{maven.PasswordVariable + "=run-token", "HTTPS_PROXY=" + h.proxy.String()}
			if err := maven.Write(dir, map[string]string{maven.PasswordVariable: "run-token", "HTTPS_PROXY": h.proxy.String()}); err != nil {
				t.Fatal(err)
			}
			h.run(t, dir, env, "mvn", "-B", "-Duser.home="+dir, "validate")
			parent, err := os.ReadFile(filepath.Join(dir, ".m2", "repository", "test", "acme", "parent", "1.0", "parent-1.0.pom"))
			if err != nil {
				t.Fatal(err)
			}
			return string(parent)
		},
		"curl": func(t *testing.T, h *host, dir string) string {
			needs(t, "curl")
			return h.run(t, dir, nil, "curl", "-sSf", base+"/maven/test/acme/greeting/1.0/greeting-1.0.x") + " curl"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, dir := newHost(t), t.TempDir()
			if got := install(t, h, dir); !strings.Contains(got, "hello from ") || !strings.Contains(got, name) {
				t.Errorf("the package says %q", got)
			}
			downloaded := h.downloaded()
			h.mu.Lock()
			defer h.mu.Unlock()
			if len(h.unsigned) > 0 {
				t.Errorf("the registry was asked without the credential: %v", h.unsigned)
			}
			if !downloaded {
				t.Errorf("no download was recorded: %+v", h.requests)
			}
			found := ""
			_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(token)) {
					found = path
				}
				return nil
			})
			if found != "" {
				t.Error(fmt.Sprintf("%s contains the credential", found))
			}
		})
	}
}
