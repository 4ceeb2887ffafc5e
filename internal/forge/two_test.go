package forge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// neighbors adds to octo/app another repository of its owner and one of another owner, whose installation has a token of its own.
func (w *world) neighbors(t *testing.T) (beside, elsewhere forge.Repo) {
	t.Helper()
	add := func(owner, name string) forge.Repo {
		r := must(w.SeedRepo(simgithub.RepoSeed{Owner: owner, Name: name, Files: map[string]string{"README.md": "# " + name + "\n"},
			Collaborators: map[string]simgithub.Role{"wendy": simgithub.RoleRead, "rita": simgithub.RoleWrite}}))(t)
		return forge.Repo{Installation: must(w.Install(owner + "/" + name))(t), Owner: owner, Name: name, ID: r.ID}
	}
	return add("octo", "beside"), add("initech", "app")
}

// TestReadTokensAreForOneRepositoryEach: repositories share no token, not even those of one installation or of one name.
func TestReadTokensAreForOneRepositoryEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	beside, elsewhere := w.neighbors(t)
	if beside.Installation != w.repo.Installation || elsewhere.Installation == w.repo.Installation {
		t.Fatalf("installations %d, %d, %d", w.repo.Installation, beside.Installation, elsewhere.Installation)
	}
	seen := map[string]string{}
	note := func(what, token string) {
		if before, known := seen[token]; known || token == "" {
			t.Errorf("%s gets the token of %s", what, before)
		}
		seen[token] = what
	}
	for _, r := range []forge.Repo{w.repo, beside, elsewhere} {
		token, _, err := w.f.GitToken(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		note(r.FullName(), token)
	}
	for _, name := range []string{"octo/app", "octo/beside", "initech/app"} {
		note(name+" by name", must(w.f.NamedToken(t.Context(), name))(t))
	}
	for _, r := range []forge.Repo{elsewhere, w.repo, beside} { // each keeps its own
		token, _, err := w.f.GitToken(t.Context(), r)
		if err != nil || seen[token] != r.FullName() {
			t.Errorf("%s gets the token of %s: %v", r.FullName(), seen[token], err)
		}
	}
}

// TestInstallationsAreKnownApart: what one owner does not grant is missing there alone.
func TestInstallationsAreKnownApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, elsewhere := w.neighbors(t)
	perms := w.App().Permissions
	perms["contents"] = "read"
	w.GrantPermissions("initech", perms)
	for range 2 {
		got := map[string][]string{}
		for _, r := range []forge.Repo{w.repo, elsewhere} {
			in := must(w.f.Installation(t.Context(), r.Installation))(t)
			got[in.Account.Login] = nil
			for _, l := range in.Lacks() {
				got[in.Account.Login] = append(got[in.Account.Login], l.Permission)
			}
		}
		if diff := cmp.Diff(map[string][]string{"octo": nil, "initech": {"contents"}}, got); diff != "" {
			t.Errorf("lacks (-want +got):\n%s", diff)
		}
	}
}

// TestPermissionsAreOfOneRepositoryEach: two people with opposite permissions in two repositories are not mixed up.
func TestPermissionsAreOfOneRepositoryEach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	beside, elsewhere := w.neighbors(t)
	for _, r := range []forge.Repo{w.repo, beside, elsewhere} {
		for _, login := range []string{"wendy", "rita"} {
			u, _ := w.User(login)
			want := (login == "wendy") == (r == w.repo)
			if got := must(w.f.Permission(t.Context(), r, login, u.ID))(t); got.CanWrite() != want {
				t.Errorf("%s in %s: %s", login, r.FullName(), got)
			}
		}
	}
}
