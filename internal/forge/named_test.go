package forge_test

import (
	"net/http"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestNamedToken: a token for a repository by its name reads that one and no other; where the App is not
// installed there is none.
func TestNamedToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"lib", "other"} {
		must(w.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: name, Private: true, Files: map[string]string{"a": "a"}}))(t)
		must(w.Install("octo/" + name))(t)
	}
	token := must(w.f.NamedToken(t.Context(), "octo/lib"))(t)
	if again := must(w.f.NamedToken(t.Context(), "Octo/LIB"))(t); token == "" || again != token {
		t.Errorf("token %q, then %q", token, again)
	}
	for path, want := range map[string]int{"lib": http.StatusOK, "other": http.StatusNotFound} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.BaseURL()+"/octo/"+path+".git/info/refs?service=git-upload-pack", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("x-access-token", token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
	w.f.ForgetToken(token)
	if again := must(w.f.NamedToken(t.Context(), "octo/lib"))(t); again == token || again == "" {
		t.Errorf("token %q again", again)
	}
	if none := must(w.f.NamedToken(t.Context(), "nobody/lib"))(t); none != "" {
		t.Errorf("a token %q for a repository without the App", none)
	}
}
