package simgithub_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"
)

// lfsAnswer is the answer about one object.
type lfsAnswer struct {
	OID     string `json:"oid"`
	Actions map[string]struct {
		Href   string            `json:"href"`
		Header map[string]string `json:"header"`
	} `json:"actions"`
	Error *struct{ Code int } `json:"error"`
}

// batch sends a batch request with a token, as git-lfs does.
func (w *world) batch(token, body string) (status int, objects []lfsAnswer) {
	w.T.Helper()
	req, err := http.NewRequestWithContext(w.T.Context(), http.MethodPost, w.URL+"/"+repo+".git/info/lfs/objects/batch", strings.NewReader(body))
	check(w.T, err)
	for _, name := range []string{"Accept", "Content-Type"} {
		req.Header.Set(name, "application/vnd.git-lfs+json; charset=utf-8")
	}
	if token != "" {
		req.SetBasicAuth("x", token)
	}
	resp, err := webtest.Client().Do(req)
	check(w.T, err)
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Objects []lfsAnswer }
	check(w.T, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer.Objects
}

// send sends a body to the address of an action.
func (w *world) send(method string, a lfsAnswer, action string, body []byte) (int, string) {
	w.T.Helper()
	at := a.Actions[action]
	req, err := http.NewRequestWithContext(w.T.Context(), method, at.Href, bytes.NewReader(body))
	check(w.T, err)
	for name, value := range at.Header {
		req.Header.Set(name, value)
	}
	resp, err := webtest.Client().Do(req)
	check(w.T, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	check(w.T, err)
	return resp.StatusCode, string(data)
}

// Uploaded objects can be downloaded by those who have access. Wrong objects are not stored.
func TestLFS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token, err := w.trans.Token(t.Context())
	check(t, err)
	content := []byte("a large file")
	const oid = "a08d6dd1a5a0be03d5cbbbd9bd4c2c4a63ba4fc4f0b8ad1ad0ae0b6b4d0b7c80"
	pointer, err := w.Sim.AddLFS(repo, []byte("there already"))
	check(t, err)
	there := strings.TrimPrefix(strings.Split(pointer, "\n")[1], "oid sha256:")
	sum := strings.TrimPrefix(strings.Split(must(w.Sim.AddLFS(repo, content)), "\n")[1], "oid sha256:")
	ask := func(operation, oid string, size int) string {
		return fmt.Sprintf(`{"operation":%q,"transfers":["basic"],"objects":[{"oid":%q,"size":%d}]}`, operation, oid, size)
	}
	status, objects := w.batch(token, ask("upload", there, 13))
	if status != http.StatusOK || len(objects) != 1 || len(objects[0].Actions) != 0 || objects[0].Error != nil {
		t.Errorf("existing objects: got %d, %+v", status, objects)
	}
	status, objects = w.batch(token, ask("download", sum, len(content)))
	if status != http.StatusOK || len(objects) != 1 {
		t.Fatalf("got %d, %+v", status, objects)
	}
	if status, got := w.send(http.MethodGet, objects[0], "download", nil); status != http.StatusOK || got != string(content) {
		t.Errorf("download: got %d, %q", status, got)
	}
	if status, _ := w.send(http.MethodPut, objects[0], "download", content); status != http.StatusForbidden {
		t.Errorf("upload to a download address: got %d", status)
	}
	status, objects = w.batch(token, ask("upload", oid, len(content)))
	if status != http.StatusOK || len(objects) != 1 || objects[0].Error != nil {
		t.Fatalf("got %d, %+v", status, objects)
	}
	for name, body := range map[string]string{"another hash": "a large f1le", "short": "a", "long": "a large file and more"} {
		if status, said := w.send(http.MethodPut, objects[0], "upload", []byte(body)); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d, %s", name, status, said)
		}
	}
	if status, _ := w.send(http.MethodPost, objects[0], "verify", []byte(ask("", oid, 1))); status != http.StatusUnprocessableEntity {
		t.Errorf("verification with another size: got %d", status)
	}
	if status, _ := w.send(http.MethodPost, objects[0], "verify", fmt.Appendf(nil, `{"oid":%q,"size":%d}`, oid, len(content))); status != http.StatusNotFound {
		t.Errorf("verification without an upload: got %d", status)
	}
	if _, err := w.Sim.LFS(repo, oid); err == nil {
		t.Error("a wrong object was stored")
	}
}

// TestLFSRefusals: invalid requests get GitHub's error codes.
func TestLFSRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none := strings.Repeat("0", 64)
	object := `"objects":[{"oid":"` + none + `","size":1}]`
	for name, c := range map[string]struct {
		as, body string
		status   int
		code     int // of the one object
	}{
		"anonymous upload":   {"", `{"operation":"upload",` + object + `}`, http.StatusUnauthorized, 0},
		"a reader uploads":   {"rob", `{"operation":"upload",` + object + `}`, http.StatusForbidden, 0},
		"a reader downloads": {"rob", `{"operation":"download",` + object + `}`, http.StatusOK, http.StatusNotFound},
		"no JSON":            {"alice", `{`, http.StatusUnprocessableEntity, 0},
		"no operation":       {"alice", `{` + object + `}`, http.StatusUnprocessableEntity, 0},
		"no objects":         {"alice", `{"operation":"upload"}`, http.StatusUnprocessableEntity, 0},
		"another hash":       {"alice", `{"operation":"upload","hash_algo":"sha512",` + object + `}`, http.StatusConflict, 0},
		"an invalid ID":      {"alice", `{"operation":"upload","objects":[{"oid":"../x","size":1}]}`, http.StatusOK, http.StatusUnprocessableEntity},
		"an invalid size":    {"alice", `{"operation":"upload","objects":[{"oid":"` + none + `","size":-1}]}`, http.StatusOK, http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := ""
			if c.as != "" {
				token = w.Sim.AddUser(c.as).Token
			}
			status, objects := w.batch(token, c.body)
			if status != c.status {
				t.Errorf("got status %d, want %d", status, c.status)
			}
			if c.code != 0 && (len(objects) != 1 || objects[0].Error == nil || objects[0].Error.Code != c.code) {
				t.Errorf("got objects %+v, want code %d", objects, c.code)
			}
		})
	}
}

// The real git-lfs, where it is installed, pushes to the simulator and clones from it.
func TestGitLFS(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git-lfs"); err != nil {
		t.Skip("git-lfs is not installed")
	}
	w := newWorld(t)
	home := t.TempDir()
	run := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+filepath.Join(home, "config"), "GIT_TERMINAL_PROMPT=0",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run(home, "lfs", "install", "--skip-repo")
	url := strings.Replace(w.URL, "://", "://alice:"+w.Sim.AddUser("alice").Token+"@", 1) + "/" + repo + ".git"
	run(home, "clone", "-q", url, "one")
	one := filepath.Join(home, "one")
	run(one, "lfs", "install", "--local")
	run(one, "lfs", "track", "*.bin")
	check(t, os.WriteFile(filepath.Join(one, "x.bin"), []byte("a large file"), 0o600))
	run(one, "add", "-A")
	run(one, "commit", "-qm", "Add a large file")
	run(one, "push", "-q", "origin", "HEAD")
	run(home, "clone", "-q", url, "two")
	got, err := os.ReadFile(filepath.Join(home, "two", "x.bin"))
	check(t, err)
	if string(got) != "a large file" {
		t.Errorf("got cloned content %q", got)
	}
}
