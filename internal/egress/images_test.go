package egress

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// image is the only image of a registry, acme/hello:1. Its layers are served by another host.
type image struct {
	manifest []byte
	blobs    map[string][]byte // blobs by digest
}

func newImage(t *testing.T) image {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	const text = "hello\n"
	if err := w.WriteHeader(&tar.Header{Name: "hello", Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	i := image{blobs: map[string][]byte{}}
	add := func(data []byte) string {
		sum := sha256.Sum256(data)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		i.blobs[digest] = data
		return digest
	}
	l := add(layer.Bytes())
	config := []byte(`{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["` + l + `"]}}`)
	c := add(config)
	i.manifest = fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":%d,"digest":%q},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","size":%d,"digest":%q}]}`,
		len(config), c, layer.Len(), l)
	return i
}

// ServeHTTP serves the hosts ghcr.io and pkg-containers.githubusercontent.com.
func (i image) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	digest := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch data, ok := i.blobs[digest]; {
	case r.Host == "ghcr.io" && r.URL.Path == "/v2/":
	case r.Host == "ghcr.io" && strings.HasPrefix(r.URL.Path, "/v2/acme/hello/manifests/"):
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write(i.manifest)
	case r.Host == "ghcr.io" && ok:
		http.Redirect(w, r, "https://pkg-containers.githubusercontent.com/"+digest, http.StatusTemporaryRedirect)
	case r.Host == "pkg-containers.githubusercontent.com" && ok:
		_, _ = w.Write(data)
	default:
		http.NotFound(w, r)
	}
}

// TestImagesArePulled pulls an image with skopeo and podman, if installed, as from GitHub, configured only by a run's
// environment.
func TestImagesArePulled(t *testing.T) {
	t.Parallel()
	for program, args := range map[string][]string{
		"skopeo": {"--insecure-policy", "copy", "--src-tls-verify=false", "docker://ghcr.io/acme/hello:1", "dir:DIR/out"},
		"podman": {"--root=DIR/root", "--runroot=SHORT", "--storage-driver=vfs", "pull", "-q", "--tls-verify=false", "ghcr.io/acme/hello:1"},
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program); err != nil {
				t.Skip("SKIP: there is no " + program)
			}
			if program == "podman" && os.Geteuid() != 0 {
				t.Skip("SKIP: podman wants ranges of user ids, which this user may not have")
			}
			if out, err := pull(t, program, args, nil); err == nil || !strings.Contains(out.told, "CONNECT ghcr.io:443 refused") || strings.Contains(out.told, "allowed") {
				t.Errorf("without the group: %v, %+v", err, out)
			}
			out, err := pull(t, program, args, Hosts([]string{"containers"}))
			if err != nil {
				t.Errorf("with the group: %v, %+v", err, out)
			}
			for _, want := range []string{"CONNECT ghcr.io:443 allowed", "CONNECT pkg-containers.githubusercontent.com:443 allowed"} {
				if !strings.Contains(out.told, want) {
					t.Errorf("want %q among\n%s", want, out.told)
				}
			}
		})
	}
}

// pulled is a program's output and the log of its requests.
type pulled struct{ printed, told string }

func pull(t *testing.T, program string, args []string, allow []string) (out pulled, err error) {
	t.Helper()
	registry := httptest.NewTLSServer(newImage(t))
	defer registry.Close()
	p := New(Config{
		Resolver: names{"ghcr.io": {"93.184.215.14"}, "pkg-containers.githubusercontent.com": {"93.184.215.15"}},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, registry.Listener.Addr().String())
		},
	})
	var mu sync.Mutex
	var open sync.WaitGroup
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Done()
		if !strings.HasPrefix(r.Header.Get("Proxy-Authorization"), "Basic ") { // form in which clients send a run's token
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		p.Serve(w, r, "vm-1", Policy{Allow: allow}, func(r Request) {
			mu.Lock()
			defer mu.Unlock()
			what := "refused"
			if r.Allowed {
				what = "allowed"
			}
			out.told += r.Method + " " + r.Host + ":" + r.Port + " " + what + "\n"
		})
	}))
	dir := t.TempDir()
	short, err := os.MkdirTemp("/tmp", "pull") // podman refuses paths of more than 50 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	for i, a := range args {
		a = strings.NewReplacer("DIR", dir, "SHORT", short).Replace(a)
		args = append(args[:i:i], append([]string{a}, args[i+1:]...)...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	address := strings.Replace(proxy.URL, "://", "://run:token@", 1)
	cmd.Env = append(os.Environ(), "HTTPS_PROXY="+address, "https_proxy="+address, "NO_PROXY=127.0.0.1", "HOME="+dir, "XDG_RUNTIME_DIR="+dir)
	printed, err := cmd.CombinedOutput()
	proxy.Close()
	open.Wait() // all requests are recorded
	out.printed = string(printed)
	return out, err
}
