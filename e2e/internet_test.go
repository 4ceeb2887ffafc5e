package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/egress"
)

// internet is the internet of a story's VMs: GitHub's container registry with one image, the host to which it redirects clients for layers, and
// a private registry. Other names do not exist.
func internet(ts *testscript.TestScript) egress.Config {
	srv := httptest.NewServer(http.HandlerFunc(registry))
	ts.Defer(srv.Close)
	private := httptest.NewTLSServer(http.HandlerFunc(privateRegistry))
	ts.Defer(private.Close)
	upstream := private.Client().Transport.(*http.Transport).Clone()
	upstream.TLSClientConfig.ServerName = "example.com" // httptest's certificate
	upstream.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, private.Listener.Addr().String())
	}
	return egress.Config{
		Upstream: upstream,
		Resolver: resolver{"ghcr.io": netip.MustParseAddr("93.184.215.14"), "pkg-containers.githubusercontent.com": netip.MustParseAddr("93.184.215.15")},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
		},
	}
}

// privateRegistry answers requests with its token, and repeats that token in the text.
func privateRegistry(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer registry-token-for-packages" {
		http.Error(w, "sign in", http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" with a token that ends in "+r.Header.Get("Authorization")[len("Bearer registry-token-"):]+"\n")
}

type resolver map[string]netip.Addr

func (r resolver) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := r[host]; ok {
		return []netip.Addr{a}, nil
	}
	return nil, errors.New("no such host")
}

// registry answers like GitHub's container registry for the image acme/hello:1.
func registry(w http.ResponseWriter, r *http.Request) {
	const layer = "the layer of an image\n"
	sum := sha256.Sum256([]byte(layer))
	digest := "sha256:" + hex.EncodeToString(sum[:])
	switch r.Host + path.Clean(r.URL.Path) {
	case "ghcr.io/v2/acme/hello/manifests/1":
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = fmt.Fprintf(w, `{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","size":%d,"digest":"%s"}]}`, len(layer), digest)
	case "ghcr.io/v2/acme/hello/blobs/" + digest:
		http.Redirect(w, r, "http://pkg-containers.githubusercontent.com/ghcr1/blobs/"+digest, http.StatusTemporaryRedirect)
	case "pkg-containers.githubusercontent.com/ghcr1/blobs/" + digest:
		_, _ = io.WriteString(w, layer)
	default:
		http.Error(w, "no such image", http.StatusNotFound)
	}
}
