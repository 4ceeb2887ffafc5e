package maven_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/runner/maven"
)

// TestWrite: a file is written only for errand's proxy, holds no secret, and replaces none.
func TestWrite(t *testing.T) {
	t.Parallel()
	const proxy = "http://run:secret@127.0.0.1:9413"
	for name, c := range map[string]struct {
		env     map[string]string
		existed bool
		written bool
	}{
		"errand's proxy":      {env: map[string]string{"HTTPS_PROXY": proxy, maven.PasswordVariable: "secret"}, written: true},
		"an existing file":    {env: map[string]string{"HTTPS_PROXY": proxy, maven.PasswordVariable: "secret"}, existed: true},
		"no proxy":            {env: map[string]string{"A": "b"}},
		"the operator's":      {env: map[string]string{"HTTPS_PROXY": "http://proxy.example:3128"}},
		"an address of a web": {env: map[string]string{"HTTPS_PROXY": "http://%", maven.PasswordVariable: "secret"}},
		"without a port":      {env: map[string]string{"HTTPS_PROXY": "http://run:secret@127.0.0.1", maven.PasswordVariable: "secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			path := filepath.Join(home, maven.Path)
			if c.existed {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := maven.Write(home, c.env); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if c.existed && string(text) != "mine" || !c.existed && (err == nil) != c.written {
				t.Errorf("the file is %q (%v)", text, err)
			}
			if c.written && (!strings.Contains(string(text), "<port>9413</port>") || strings.Contains(string(text), "secret")) {
				t.Errorf("the file is %s", text)
			}
		})
	}
}

// TestHeavyMavenUsesTheProxy has Maven resolve a dependency through a proxy that requires a password.
func TestHeavyMavenUsesTheProxy(t *testing.T) {
	heavytest.Mark(t)
	t.Parallel()
	program, err := exec.LookPath("mvn")
	if err != nil {
		t.Skip("skipped: Maven is not installed, which downloads through errand's proxy")
	}
	var mu sync.Mutex
	allowed := map[string]bool{} // hosts
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
		if who, password, _ := r.BasicAuth(); who != "run" || password != "secret" {
			w.Header().Set("Proxy-Authenticate", `Basic realm="errand"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		allowed[r.Host] = true
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	home := t.TempDir()
	env := map[string]string{"HTTPS_PROXY": strings.Replace(proxy.URL, "://", "://run:secret@", 1), maven.PasswordVariable: "secret"}
	if err := maven.Write(home, env); err != nil {
		t.Fatal(err)
	}
	const project = `<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>b</artifactId><version>1</version>
<repositories><repository><id>central</id><url>https://maven.example/maven2</url></repository></repositories>
<pluginRepositories><pluginRepository><id>central</id><url>https://maven.example/maven2</url></pluginRepository></pluginRepositories></project>`
	if err := os.WriteFile(filepath.Join(home, "pom.xml"), []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--batch-mode", "-Duser.home="+home, "-Dmaven.repo.local="+home+"/repository", "compile")
	cmd.Dir, cmd.Env = home, append(os.Environ(), maven.PasswordVariable+"=secret")
	out, err := cmd.CombinedOutput()
	mu.Lock()
	defer mu.Unlock()
	if err == nil || !allowed["maven.example:443"] || len(allowed) != 1 {
		t.Errorf("the proxy was asked for %v (%v)\n%s", allowed, err, out)
	}
}
