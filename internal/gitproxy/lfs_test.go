package gitproxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/state"
)

const lfsSecret = "RemoteAuth our-side-only"

// newLFS returns the end of a VM before a forge with one LFS object, which is stored elsewhere and requires a header.
func newLFS(t *testing.T, href func(forge, oid string) string) (w *end, oid string, content string) {
	t.Helper()
	content = strings.Repeat("large ", 1000)
	sum := sha256.Sum256([]byte(content))
	oid = hex.EncodeToString(sum[:])
	mux := http.NewServeMux()
	var forge *httptest.Server
	mux.HandleFunc("POST /acme/shop.git/info/lfs/objects/batch", func(w http.ResponseWriter, r *http.Request) {
		_, token, _ := r.BasicAuth()
		var request struct {
			Operation string
			Objects   []struct {
				OID  string
				Size int
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || token != readToken || request.Operation != "download" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		var objects []map[string]any
		for _, o := range request.Objects {
			object := map[string]any{"oid": o.OID, "size": o.Size, "error": map[string]any{"code": 404, "message": "Object does not exist"}}
			if o.OID == oid {
				object = map[string]any{"oid": o.OID, "size": o.Size, "actions": map[string]any{
					"download": map[string]any{"href": href(forge.URL, oid), "header": map[string]string{"Authorization": lfsSecret}, "expires_in": 600},
					"upload":   map[string]any{"href": "https://example.org/evil"},
				}}
			}
			objects = append(objects, object)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": objects})
	})
	mux.HandleFunc("GET /moved/{oid}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/stored/"+r.PathValue("oid"), http.StatusFound)
	})
	mux.HandleFunc("GET /stored/{oid}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != lfsSecret {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	})
	forge = httptest.NewServer(mux)
	t.Cleanup(forge.Close)
	w = newEnd(t, func(c *Config) {
		c.Repository = func(context.Context, *state.Task) (string, string, error) {
			return forge.URL + "/acme/shop.git", readToken, nil
		}
	})
	return w, oid, content
}

// post sends a body as a program on the VM does.
func post(t *testing.T, w *end, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+vmToken)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

const batchPath = "/git/acme/shop.git/info/lfs/objects/batch"

// TestLFS: a VM gets URLs of errand, not the storage's own address and credentials.
func TestLFS(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{"stored": "/stored/", "moved": "/moved/"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, oid, content := newLFS(t, func(forge, oid string) string {
				return forge + place + oid + "?signature=secret"
			})
			none := strings.Repeat("0", 64)
			status, body := post(t, w, batchPath, fmt.Sprintf(
				`{"operation":"download","transfers":["basic","ssh"],"objects":[{"oid":%q,"size":%d},{"oid":%q,"size":3}]}`, oid, len(content), none))
			if status != http.StatusOK {
				t.Fatalf("got status %d: %s", status, body)
			}
			for _, secret := range []string{readToken, lfsSecret, "signature", "example.org", "stored"} {
				if strings.Contains(body, secret) {
					t.Errorf("got objects %q: %s", secret, body)
				}
			}
			var answer struct {
				Objects []struct {
					Error   any
					Actions map[string]struct {
						Href   string
						Header map[string]string
					}
				}
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Objects) != 2 || answer.Objects[1].Error == nil || len(answer.Objects[1].Actions) != 0 {
				t.Fatalf("%v: %s", err, body)
			}
			at := answer.Objects[0].Actions["download"]
			if !strings.HasPrefix(at.Href, w.url+"/git/acme/shop.git/") {
				t.Fatalf("got object address %s", at.Href)
			}
			if shown := at.Header["Authorization"]; shown != "Bearer "+vmToken {
				t.Errorf("the VM gets the token %q, want its own", shown)
			}
			status, got := send(t, http.MethodGet, at.Href, at.Header)
			if status != http.StatusOK || got != content {
				t.Errorf("got status %d, %d bytes of %d: %.80s", status, len(got), len(content), got)
			}
			at.Header["Range"] = "bytes=6-10"
			status, got = send(t, http.MethodGet, at.Href, at.Header)
			if status != http.StatusPartialContent || got != content[6:11] {
				t.Errorf("range request: got status %d, %q", status, got)
			}
			status, got = send(t, http.MethodGet, w.url+"/git/acme/shop.git/info/lfs/objects/"+none+"/3", nil)
			if status != http.StatusNotFound {
				t.Errorf("missing object: got status %d, %q", status, got)
			}
		})
	}
}

func TestLFSDenied(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "internal") }))
	t.Cleanup(elsewhere.Close)
	w, oid, content := newLFS(t, func(string, string) string { return elsewhere.URL + "/metadata" })
	for name, test := range map[string]struct {
		path, body string
		status     int
	}{
		"upload":             {batchPath, `{"operation":"upload","objects":[]}`, 403},
		"no operation":       {batchPath, `{"objects":[]}`, 403},
		"another repository": {"/git/acme/other.git/info/lfs/objects/batch", `{"operation":"download","objects":[]}`, 403},
		"verify":             {"/git/acme/shop.git/info/lfs/objects/verify", `{}`, 403},
		"locks":              {"/git/acme/shop.git/info/lfs/locks/verify", `{}`, 403},
		"too long":           {batchPath, `{"operation":"download","x":"` + strings.Repeat("x", 2<<20) + `"}`, 422},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if status, body := post(t, w, test.path, test.body); status != test.status || !strings.Contains(body, "errand: ") {
				t.Errorf("got status %d: %s", status, body)
			}
		})
	}
	// A forge that names a place of its own network is not followed there.
	at := fmt.Sprintf("%s/git/acme/shop.git/info/lfs/objects/%s/%d", w.url, oid, len(content))
	status, body := send(t, http.MethodGet, at, nil)
	if status != http.StatusBadGateway || strings.Contains(body, "internal") {
		t.Errorf("got status %d: %s", status, body)
	}
}

// TestRealLFS: the real git-lfs fetches an object.
func TestRealLFS(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git-lfs"); err != nil {
		t.Skip("git-lfs is not installed: what it does is tried with its API alone")
	}
	f := newGitForge(t, "acme/shop")
	f.large = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/stored/") {
			_, _ = io.WriteString(w, largeText)
			return
		}
		var request struct{ Objects []map[string]any }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, o := range request.Objects {
			o["actions"] = map[string]any{"download": map[string]any{"href": f.url + "/stored/lfs/x", "header": map[string]string{"Authorization": r.Header.Get("Authorization")}}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"objects": request.Objects})
	})
	w := newGitEnd(t, f)
	dir := t.TempDir()
	mustGit(t, dir, asVM(w, "clone", "-q", w.url+"/git/acme/shop", "c")...)
	dir = filepath.Join(dir, "c")
	if data, err := os.ReadFile(filepath.Join(dir, "large.bin")); err != nil || !strings.Contains(string(data), "oid sha256") {
		t.Fatalf("%v: %s", err, data)
	}
	mustGit(t, dir, "lfs", "install", "--local")
	said := mustGit(t, dir, asVM(w, "lfs", "pull")...)
	if data, err := os.ReadFile(filepath.Join(dir, "large.bin")); err != nil || string(data) != largeText {
		t.Errorf("got error %v, %q; output of git-lfs: %s", err, data, said)
	}
}
