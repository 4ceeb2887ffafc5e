package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manyFiles and fileBytes make a repository whose checkout has about 129 MB.
const (
	manyFiles = 20_000
	fileBytes = 6_450
)

// BenchmarkGitReads compares a clone through the tether with the same clone made directly.
func BenchmarkGitReads(b *testing.B) {
	for b.Loop() {
		repo := filepath.Join(b.TempDir(), "acme", "big.git")
		crowdedRepo(b, repo)
		backend := httptest.NewServer(gitBackend(b, filepath.Dir(filepath.Dir(repo))))
		w := newWire(b, backend.URL+"/acme/big.git")
		var direct, through []time.Duration
		for range 3 { // in turns, because the machine may be busy
			direct = append(direct, clone(b, backend.URL+"/acme/big.git", ""))
			through = append(through, clone(b, strings.Replace(w.vms[0].through, "/llm/anthropic", "/git/acme/big", 1), w.vms[0].token))
		}
		d, t := least(direct), least(through)
		figure(b, "clone of %d files, 129 MB checked out: direct %s, through the tether %s = %.2f × (at most 1.3 ×); best of three", manyFiles, d, t, float64(t)/float64(d))
		backend.Close()
	}
}

func least(list []time.Duration) time.Duration {
	best := list[0]
	for _, d := range list {
		best = min(best, d)
	}
	return best.Round(10 * time.Millisecond)
}

// clone clones and checks out, and returns the duration.
func clone(b *testing.B, url, token string) time.Duration {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "clone")
	defer func() { check(b, os.RemoveAll(dir)) }()
	args := []string{"clone", "--quiet", url, dir}
	if token != "" {
		args = append([]string{"-c", "http.extraHeader=Authorization: Bearer " + token}, args...)
	}
	unix.Sync() // flushes the writes of the previous clone
	begun := time.Now()
	git(b, nil, args...)
	took := time.Since(begun)
	if _, err := os.Stat(filepath.Join(dir, "d199", "f19999.txt")); err != nil {
		b.Fatal(err)
	}
	return took
}

// crowdedRepo makes a bare repository of many files in one commit.
func crowdedRepo(b *testing.B, dir string) {
	b.Helper()
	git(b, nil, "init", "--quiet", "--bare", "--initial-branch=main", dir)
	rnd := rand.New(rand.NewPCG(1, 2))
	var in bytes.Buffer
	in.WriteString("commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 3\nall\n")
	for i := range manyFiles {
		text := make([]byte, 0, fileBytes)
		for len(text) < fileBytes-64 {
			text = fmt.Appendf(text, "line %d of %d\n", rnd.IntN(1_000_000), i)
		}
		fmt.Fprintf(&in, "M 100644 inline d%d/f%d.txt\ndata %d\n%s\n", i/100, i, len(text), text)
	}
	git(b, &in, "-C", dir, "fast-import", "--quiet")
}

// gitBackend serves the repositories in a folder for reading.
func gitBackend(b *testing.B, root string) http.Handler {
	b.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	check(b, err)
	return &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Stderr: os.Stderr,
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, InheritEnv: []string{"PATH"},
	}
}

// git runs git without the user's own settings.
func git(b *testing.B, in *bytes.Buffer, args ...string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	if in != nil {
		cmd.Stdin = in
	}
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_TERMINAL_PROMPT=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}
