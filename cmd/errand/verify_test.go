package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/provenance"
)

// gitHubStub answers as GitHub does about a pull request of an App without a statement, to the right token.
func gitHubStub(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Bearer good":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"message":"Bad credentials"}`))
		case r.URL.Path == "/api/v3/repos/octo/calc/pulls/2":
			_, _ = w.Write([]byte(`{"number":2,"user":{"id":5,"login":"errand[bot]","type":"Bot"},"head":{"sha":"a"},"base":{"repo":{"id":9,"full_name":"octo/calc"}}}`))
		case r.URL.Path == "/api/v3/repos/octo/calc/pulls/3":
			_, _ = w.Write([]byte(`{"number":3,"user":{"id":6,"login":"\u001b[2Jada","type":"User"},"base":{"repo":{"id":9,"full_name":"octo/calc"}}}`))
		case r.URL.Path == "/api/graphql":
			_, _ = w.Write([]byte(`{"data":{"repository":{"pullRequest":{"comments":{"nodes":[]}}}}}`))
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"message":"Not Found"}`))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestVerifyReportsWhatItCannotCheck: without a result the exit code is 2, and the message says why.
func TestVerifyReportsWhatItCannotCheck(t *testing.T) {
	t.Parallel()
	server := gitHubStub(t)
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	k, err := keyfile.ReadSigning(filepath.Join(dir, "key"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	list, err := provenance.PublishKeys(k)
	if err != nil {
		t.Fatal(err)
	}
	good := write("keys.json", string(list))
	for name, c := range map[string]struct {
		token string
		args  []string
		out   string
		errs  string
	}{
		"no statement":       {"good", []string{"octo/calc#2", "--key", good}, "no comment by @errand[bot] on this pull request contains a statement", "could not be confirmed"},
		"a person's":         {"good", []string{"octo/calc#3"}, "and not an App", "could not be confirmed"},
		"no pull request":    {"good", []string{"octo/calc#4"}, "", "verify octo/calc#4"},
		"a wrong token":      {"bad", []string{"octo/calc#2"}, "", "verify octo/calc#2"},
		"no token":           {"", []string{"octo/calc#2"}, "", "GITHUB_TOKEN"},
		"no keys in a file":  {"good", []string{"octo/calc#2", "--key", write("empty", "")}, "", "has no public keys"},
		"a private key":      {"good", []string{"octo/calc#2", "--key", filepath.Join(dir, "key")}, "", "key 1"},
		"a missing file":     {"good", []string{"octo/calc#2", "--key", filepath.Join(dir, "none")}, "", "read the keys"},
		"no number":          {"good", []string{"octo/calc"}, "", "OWNER/REPO#NUMBER"},
		"two pull requests":  {"good", []string{"octo/calc#2", "octo/calc#3"}, "", "one pull request"},
		"an enormous number": {"good", []string{"octo/calc#99999999999999999999"}, "", "read the number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			code := run(t.Context(), cli.World{
				Args: append([]string{"verify", "--github", server}, c.args...), Out: &out, Err: &errs,
				Lookup: func(name string) (string, bool) {
					if name == "GITHUB_TOKEN" && c.token != "" {
						return c.token, true
					}
					return "", false
				},
			})
			if code != cli.ExitUnchecked || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("got code %d, %q, %q", code, out.String(), errs.String())
			}
			if strings.Contains(out.String()+errs.String(), "\x1b") {
				t.Errorf("the output controls the terminal: %q", out.String())
			}
		})
	}
}

// TestVerifyPrintsJSON: the report is JSON with the names in the documentation.
func TestVerifyPrintsJSON(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	code := run(t.Context(), cli.World{
		Args: []string{"verify", "octo/calc#2", "--json"}, Out: &out, Err: &errs,
		Lookup: func(name string) (string, bool) {
			v, ok := map[string]string{"GH_TOKEN": "good", "GITHUB_SERVER_URL": gitHubStub(t)}[name]
			return v, ok
		},
	})
	var r struct {
		PullRequest, Result string
		KeyPinned           *bool
		Links               []struct{ Link, Verdict, Detail string }
	}
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || code != cli.ExitUnchecked || r.PullRequest != "octo/calc#2" || r.KeyPinned == nil ||
		len(r.Links) != 1 || r.Links[0].Link != "statement" || r.Links[0].Verdict != "no longer visible" || r.Result != "could not be confirmed" {
		t.Errorf("got code %d, %v, %+v: %s%s", code, err, r, out.String(), errs.String())
	}
}

// fullDisk refuses every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestVerifyNamesWhatTheChainDoesNotCover: the result says how many commits are by others.
func TestVerifyNamesWhatTheChainDoesNotCover(t *testing.T) {
	t.Parallel()
	others := provenance.Link{Name: "commit 12345678", Verdict: provenance.Others}
	for links, want := range map[int]string{0: "#2: the chain holds.\n", 1: "#2: the chain holds; it does not cover 1 commit by others.\n", 2: "it does not cover 2 commits by others.\n"} {
		var out strings.Builder
		r := provenance.Report{PullRequest: "octo/calc#2", Result: provenance.ChainHolds, Links: []provenance.Link{others, others}[:links]}
		if err := printReport(cli.World{Out: &out}, r, false); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%d: got %q, %v", links, out.String(), err)
		}
	}
}

// TestVerifyWithoutKeysConfirmsNothing: the result names the App, and only a chain that holds with a trusted key has the exit code 0.
func TestVerifyWithoutKeysConfirmsNothing(t *testing.T) {
	t.Parallel()
	w := cli.World{Args: []string{}, Out: fullDisk{}, Err: io.Discard}
	root := cli.Root(w)
	root.RunE = func(*cobra.Command, []string) error {
		return show(w, "octo/calc#2", provenance.Report{Result: provenance.ChainHolds}, false)
	}
	if code := cli.Execute(t.Context(), w, root); code != cli.ExitUnchecked {
		t.Errorf("a report that cannot be written: got code %d", code)
	}
	for result, want := range map[provenance.Result]int{
		provenance.ChainHolds: cli.ExitOK, provenance.ChainBroken: cli.ExitFailed, provenance.ChainUnknown: cli.ExitUnchecked, provenance.ChainUnpinned: cli.ExitUnchecked,
	} {
		var out, errs strings.Builder
		w := cli.World{Args: []string{}, Out: &out, Err: &errs}
		r := provenance.Report{PullRequest: "octo/calc#2", Result: result, App: &provenance.Person{Login: "other[bot]"}}
		root := cli.Root(w)
		root.RunE = func(*cobra.Command, []string) error {
			return show(w, "octo/calc#2", r, false)
		}
		code := cli.Execute(t.Context(), w, root)
		if named := strings.Contains(out.String(), "the chain holds, with a key that only the statement names (App @other[bot])."); code != want || named != (result == provenance.ChainUnpinned) {
			t.Errorf("%s: got code %d, %q, %q", result, code, out.String(), errs.String())
		}
	}
}
