package client_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestNamedToken checks that a token for a repository by its name reads only that repository, and that there is none if
// the App is not installed there.
func TestNamedToken(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	for _, name := range []string{"lib", "other"} {
		forgetest.Must(w.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: name, Private: true, Files: map[string]string{"a": "a"}}))(t)
		forgetest.Must(w.Install("octo/" + name))(t)
	}
	token := forgetest.Must(w.Forge.NamedToken(t.Context(), "octo/lib"))(t)
	if again := forgetest.Must(w.Forge.NamedToken(t.Context(), "Octo/LIB"))(t); token == "" || again != token {
		t.Errorf("got token %q, then %q", token, again)
	}
	for path, want := range map[string]int{"lib": http.StatusOK, "other": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.BaseURL()+"/octo/"+path+".git/info/refs?service=git-upload-pack", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("x-access-token", token)
		resp, err := webtest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
	w.Forge.ForgetToken(token)
	if again := forgetest.Must(w.Forge.NamedToken(t.Context(), "octo/lib"))(t); again == token || again == "" {
		t.Errorf("got token %q again", again)
	}
	if none := forgetest.Must(w.Forge.NamedToken(t.Context(), "nobody/lib"))(t); none != "" {
		t.Errorf("got token %q for a repository without the App", none)
	}
}

// TestTokensAreForOneRepository checks that repositories share no token, not even in one installation or with one name.
func TestTokensAreForOneRepository(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	beside, elsewhere := w.Neighbors(t)
	if beside.Installation != w.Repo.Installation || elsewhere.Installation == w.Repo.Installation {
		t.Fatalf("got installations %d, %d, %d", w.Repo.Installation, beside.Installation, elsewhere.Installation)
	}
	seen := map[string]string{}
	note := func(what, token string) {
		if before, known := seen[token]; known || token == "" {
			t.Errorf("%s: got the token of %s", what, before)
		}
		seen[token] = what
	}
	for _, r := range []forge.Repo{w.Repo, beside, elsewhere} {
		token, _, err := w.Forge.GitToken(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		note(r.FullName(), token)
	}
	for _, name := range []string{"octo/app", "octo/beside", "initech/app"} {
		note(name+" by name", forgetest.Must(w.Forge.NamedToken(t.Context(), name))(t))
	}
	for _, r := range []forge.Repo{elsewhere, w.Repo, beside} { // each has its own token
		token, _, err := w.Forge.GitToken(t.Context(), r)
		if err != nil || seen[token] != r.FullName() {
			t.Errorf("%s: got the token of %s, error %v", r.FullName(), seen[token], err)
		}
	}
}

func TestGitToken(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := forgetest.NewWorld(t, func(c *forge.Config) { c.Now = func() time.Time { return now } })
	get := func() (string, time.Time) {
		t.Helper()
		token, expires, err := w.Forge.GitToken(t.Context(), w.Repo)
		if err != nil {
			t.Fatal(err)
		}
		return token, expires
	}
	first, expires := get()
	if again, _ := get(); again != first {
		t.Error("the token was not cached")
	}
	now = expires.Add(-5 * time.Minute)
	second, _ := get()
	if second == first {
		t.Error("got a token that is about to expire")
	}
	now = time.Now()
	for range 2 { // the second time it is already revoked
		if err := w.Forge.Revoke(t.Context(), second); err != nil {
			t.Error(err)
		}
	}
	if third, _ := get(); third == second {
		t.Error("got a revoked token")
	}
}

func TestUninstalledAppIsErrNotInstalled(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	w.Uninstall("octo")
	_, err := w.Forge.CreateComment(t.Context(), w.Repo, 1, "hello")
	if !errors.Is(err, forge.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
}

func TestExpiredTokensAreReplaced(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	n := w.OpenIssue(t, "A bug").Number
	forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, n))(t)
	w.ExpireTokens() // as when an installation was suspended for a while
	_, err := w.Forge.Issue(t.Context(), w.Repo, n)
	if class, _ := forge.Classify(err); err == nil || class != forge.ClassTemporary {
		t.Errorf("got class %s: %v", class, err)
	}
	forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, n))(t)
	w.ExpireTokens() // renewed with a delay, so the failure is temporary
	forgetest.Poll(t, "renewed token", func() bool {
		_, err := w.Forge.Issue(t.Context(), w.Repo, n)
		if class, _ := forge.Classify(err); err != nil && class != forge.ClassTemporary {
			t.Fatalf("got class %s: %v", class, err)
		}
		return err == nil
	})
}
