package work_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner/proc"
	"github.com/errand-bot/errand/internal/runner/work"
)

// lfsMain lets the test binary play `errand-runner lfs` for the filters of checkouts.
func lfsMain(args []string) int {
	filters := map[string]func() error{
		"clean":  func() error { return work.LFSClean(context.Background(), ".", os.Stdin, os.Stdout) },
		"smudge": func() error { return work.LFSSmudge(context.Background(), ".", os.Stdin, os.Stdout) },
	}
	if err := filters[args[0]](); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// largeOrigin is a repository in which *.bin are large files, and whose a.bin was pushed.
func largeOrigin(t *testing.T) origin {
	t.Helper()
	dir := t.TempDir()
	_, pointer := changeset.PointerTo([]byte("published\n"))
	git(t, dir, "init", "-q", "-b", "main")
	writeFile(t, filepath.Join(dir, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	writeFile(t, filepath.Join(dir, "a.bin"), pointer)
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "first")
	return origin{url: "file://" + dir, head: git(t, dir, "rev-parse", "HEAD")}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// largeCheckout makes a workspace as the orchestrator does, with the test binary as the filter.
func largeCheckout(t *testing.T, url string) string {
	t.Helper()
	o := largeOrigin(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "work")
	at, err := work.Prepare(testContext(t), work.PrepareSpec{
		Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/main"}, Branch: "errand/1-x", Base: o.head, Config: work.LFSConfig(self, url),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !at.LargeFiles {
		t.Error("the checkout's large files were not noticed")
	}
	return dir
}

// TestLargeFilesAreCollected: large files that an agent adds are in the changeset as pointers with content, committed
// or not; files that the base has and missing objects are not.
func TestLargeFilesAreCollected(t *testing.T) {
	t.Parallel()
	missing, missingText := changeset.PointerTo([]byte("missing"))
	for name, c := range map[string]struct {
		script string
		want   []string
		blobs  int // in all
	}{
		"committed":        {"echo new > b.bin; git add b.bin; git commit -qm b", []string{"new\n"}, 1},
		"uncommitted":      {"echo new > b.bin", []string{"new\n"}, 1},
		"changed twice":    {"echo new > b.bin; git add b.bin; git commit -qm b; echo newer > b.bin", []string{"new\n", "newer\n"}, 2},
		"twice the same":   {"echo new > b.bin; echo new > c.bin", []string{"new\n"}, 1},
		"moved":            {"git mv a.bin z.bin", nil, 1},
		"empty":            {": > b.bin", nil, 1},
		"no large file":    {"echo new > b.txt", nil, 1},
		"not here":         {"printf '" + strings.ReplaceAll(missingText, "\n", `\n`) + "' > b.bin", nil, 1},
		"tampered with":    {"echo new > b.bin; git add b.bin; git commit -qm b; f=$(find .git/lfs/objects -type f); chmod u+w $f; echo NEW > $f; rm b.bin", nil, 1},
		"a link elsewhere": {"echo new > b.bin; git add b.bin; git commit -qm b; f=$(find .git/lfs/objects -type f); mv $f ../x; ln -s ../../../../../../x $f; rm b.bin", nil, 1},
		"a pipe":           {"echo new > b.bin; git add b.bin; git commit -qm b; f=$(find .git/lfs/objects -type f); rm $f; mkfifo $f; rm b.bin", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := largeCheckout(t, "")
			base := git(t, dir, "rev-parse", "HEAD")
			script(t, dir, c.script)
			set, err := work.Collect(testContext(t), work.CollectSpec{Dir: dir, Base: base})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, content := range set.LFS {
				got = append(got, string(content))
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("large files (-want +got):\n%s", diff)
			}
			if len(set.Blobs) != c.blobs {
				t.Errorf("%d blobs, want %d", len(set.Blobs), c.blobs)
			}
			if _, there := set.LFS[missing.OID]; there {
				t.Error("what is not here was collected")
			}
		})
	}
}

// TestChecksSeeLargeFiles: a check's worktree contains the large files that the checkout has, and pointers for the
// others. It is not parallel, like TestCheck.
func TestChecksSeeLargeFiles(t *testing.T) {
	dir := largeCheckout(t, "")
	script(t, dir, "echo new > b.bin; git add b.bin; git commit -qm b")
	var out, log bytes.Buffer
	err := work.Check(testContext(t), t.TempDir(), work.CheckSpec{
		Dir: dir, Head: git(t, dir, "rev-parse", "HEAD"), Isolation: proc.Group,
		Commands: []work.CheckCommand{{Name: "large", Command: "cat b.bin; head -n 1 a.bin; git status --porcelain"}},
	}, &out, &log)
	if want := "new\nversion https://git-lfs.github.com/spec/v1\n"; err != nil || log.String() != want {
		t.Errorf("%v, the check printed %q, want %q\n%s", err, log.String(), want, out.String())
	}
}

// lfsServer serves one object, and announces a second one but sends different content.
func lfsServer(t *testing.T, content string) (url string, wrong changeset.Pointer) {
	t.Helper()
	has, _ := changeset.PointerTo([]byte(content))
	wrong, _ = changeset.PointerTo([]byte("wrong"))
	mux := http.NewServeMux()
	var base string
	mux.HandleFunc("POST /repo.git/info/lfs/objects/batch", func(w http.ResponseWriter, r *http.Request) {
		var ask struct{ Objects []struct{ OID string } }
		if r.Header.Get("Authorization") != "Bearer run" || json.NewDecoder(r.Body).Decode(&ask) != nil {
			http.Error(w, `{"message":"no"}`, http.StatusForbidden)
			return
		}
		var list []any
		for _, o := range ask.Objects {
			if o.OID != has.OID && o.OID != wrong.OID {
				list = append(list, map[string]any{"oid": o.OID, "error": map[string]any{"code": 404, "message": "Object does not exist"}})
				continue
			}
			list = append(list, map[string]any{"oid": o.OID, "actions": map[string]any{
				"download": map[string]any{"href": base + "/object/" + o.OID, "header": map[string]string{"Authorization": "Bearer object"}},
			}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"objects": list})
	})
	mux.HandleFunc("GET /object/{oid}", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer object" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(content)) // a test's answer
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	base = server.URL
	return server.URL + "/repo", wrong
}

// TestPull: pointers are replaced by their content, without a change that git reports; objects that cannot be fetched
// are reported and stay pointers.
func TestPull(t *testing.T) {
	t.Parallel()
	url, wrong := lfsServer(t, "published\n")
	dir := largeCheckout(t, url)
	git(t, dir, "config", "http."+url+".git/.extraHeader", "Authorization: Bearer run")
	if got := readFile(t, filepath.Join(dir, "a.bin")); !strings.HasPrefix(got, "version ") {
		t.Fatalf("the checkout begins with %q", got)
	}
	_, missing := changeset.PointerTo([]byte("missing"))
	writeFile(t, filepath.Join(dir, "missing.bin"), missing)
	writeFile(t, filepath.Join(dir, "wrong.bin"), wrong.String())
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-qm", "pointers")
	for _, c := range []struct {
		patterns []string
		want     work.Pulled
	}{
		{[]string{"a.bin"}, work.Pulled{Files: 1}},
		{nil, work.Pulled{Missing: []string{"missing.bin: Object does not exist", "wrong.bin: the content does not match its pointer"}}},
	} {
		got, err := work.LFSPull(testContext(t), dir, c.patterns)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%v: %v (-want +got):\n%s", c.patterns, err, diff)
		}
	}
	if got := readFile(t, filepath.Join(dir, "a.bin")); got != "published\n" {
		t.Errorf("a.bin has %q", got)
	}
	if got := readFile(t, filepath.Join(dir, "missing.bin")); got != missing {
		t.Errorf("missing.bin has %q", got)
	}
	if status := git(t, dir, "status", "--porcelain"); status != "" {
		t.Errorf("git sees changes:\n%s", status)
	}
}
