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

// TestVerifyAsksTheRightGitHub: GitHub Actions sets the addresses of its GitHub. Otherwise they follow from the kind of the server.
func TestVerifyAsksTheRightGitHub(t *testing.T) {
	t.Parallel()
	type env map[string]string
	const web, rest, graphQL = "GITHUB_SERVER_URL", "GITHUB_API_URL", "GITHUB_GRAPHQL_URL"
	for name, c := range map[string]struct {
		env  env
		flag string
		want [3]string
	}{
		"nothing is set": {},
		"github.com": {env: env{web: "https://github.com", rest: "https://api.github.com", graphQL: "https://api.github.com/graphql"},
			want: [3]string{"https://github.com", "https://api.github.com", "https://api.github.com/graphql"}},
		"github.com, by its pages": {env: env{web: "https://github.com"}, want: [3]string{"https://github.com"}},
		"GHE.com": {env: env{web: "https://acme.ghe.com", rest: "https://api.acme.ghe.com", graphQL: "https://api.acme.ghe.com/graphql"},
			want: [3]string{"https://acme.ghe.com", "https://api.acme.ghe.com", "https://api.acme.ghe.com/graphql"}},
		"GHE.com, by its pages": {flag: "https://acme.ghe.com/", want: [3]string{"https://acme.ghe.com", "https://api.acme.ghe.com", "https://api.acme.ghe.com/graphql"}},
		"a server": {env: env{web: "https://git.example", rest: "https://git.example/api/v3", graphQL: "https://git.example/api/graphql"},
			want: [3]string{"https://git.example", "https://git.example/api/v3", "https://git.example/api/graphql"}},
		"a server, by its pages":  {flag: "https://git.example", want: [3]string{"https://git.example", "https://git.example/api/v3", "https://git.example/api/graphql"}},
		"an API elsewhere":        {env: env{web: "https://git.example", rest: "https://api.git.example/"}, want: [3]string{"https://git.example", "https://api.git.example", "https://api.git.example/graphql"}},
		"only an API":             {env: env{rest: "https://git.example/api/v3"}, want: [3]string{"", "https://git.example/api/v3", "https://git.example/api/graphql"}},
		"a flag in another's run": {env: env{web: "https://github.com", rest: "https://api.github.com", graphQL: "https://api.github.com/graphql"}, flag: "https://git.example", want: [3]string{"https://git.example", "https://git.example/api/v3", "https://git.example/api/graphql"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := cli.World{Lookup: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
			a, b, d, err := gitHubAddresses(w, c.flag)
			if got := [3]string{a, b, d}; err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	for _, address := range []string{"git.example", "ftp://git.example", "https://"} {
		if _, _, _, err := gitHubAddresses(cli.World{}, address); err == nil {
			t.Errorf("%q was accepted", address)
		}
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

// TestStrictVerificationAcceptsOnlyProof: with --strict, a link that GitHub does not confirm has the exit code 2.
func TestStrictVerificationAcceptsOnlyProof(t *testing.T) {
	t.Parallel()
	holds, stated, others := provenance.Link{Verdict: provenance.Holds}, provenance.Link{Verdict: provenance.Stated}, provenance.Link{Verdict: provenance.Others}
	for name, c := range map[string]struct {
		links        []provenance.Link
		result       provenance.Result
		code, strict int
		message      string
	}{
		"everything holds":     {[]provenance.Link{holds, holds}, provenance.ChainHolds, cli.ExitOK, cli.ExitOK, ""},
		"a link only stated":   {[]provenance.Link{holds, stated}, provenance.ChainHolds, cli.ExitOK, cli.ExitUnchecked, "does not confirm 1 link,"},
		"commits by others":    {[]provenance.Link{others, others}, provenance.ChainHolds, cli.ExitOK, cli.ExitUnchecked, "does not confirm 2 links,"},
		"a broken chain":       {[]provenance.Link{others}, provenance.ChainBroken, cli.ExitFailed, cli.ExitFailed, "does not hold"},
		"an unconfirmed chain": {[]provenance.Link{others}, provenance.ChainUnknown, cli.ExitUnchecked, cli.ExitUnchecked, "could not be confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for strict, want := range map[bool]int{false: c.code, true: c.strict} {
				var errs strings.Builder
				w := cli.World{Args: []string{}, Out: io.Discard, Err: &errs}
				root := cli.Root(w)
				root.RunE = func(*cobra.Command, []string) error {
					return show(w, "octo/calc#2", provenance.Report{Result: c.result, Links: c.links}, verifyFlags{strict: strict})
				}
				if code := cli.Execute(t.Context(), w, root); code != want || strict && !strings.Contains(errs.String(), c.message) {
					t.Errorf("strict %v: got code %d, want %d: %s", strict, code, want, errs.String())
				}
			}
		})
	}
}

// TestVerifyWithoutKeysConfirmsNothing: the result names the App, and only a chain that holds with a trusted key has the exit code 0.
func TestVerifyWithoutKeysConfirmsNothing(t *testing.T) {
	t.Parallel()
	w := cli.World{Args: []string{}, Out: fullDisk{}, Err: io.Discard}
	root := cli.Root(w)
	root.RunE = func(*cobra.Command, []string) error {
		return show(w, "octo/calc#2", provenance.Report{Result: provenance.ChainHolds}, verifyFlags{})
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
			return show(w, "octo/calc#2", r, verifyFlags{})
		}
		code := cli.Execute(t.Context(), w, root)
		if named := strings.Contains(out.String(), "the chain holds, with a key that only the statement names (App @other[bot])."); code != want || named != (result == provenance.ChainUnpinned) {
			t.Errorf("%s: got code %d, %q, %q", result, code, out.String(), errs.String())
		}
	}
}
