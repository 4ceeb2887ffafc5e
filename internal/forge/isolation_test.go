package forge_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

// TestInstallationsAreCachedSeparately checks that a permission that one owner does not grant is missing only there.
func TestInstallationsAreCachedSeparately(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	_, elsewhere := w.Neighbors(t)
	perms := w.App().Permissions
	perms["contents"] = "read"
	w.GrantPermissions("initech", perms)
	for range 2 {
		got := map[string][]string{}
		for _, r := range []forge.Repo{w.Repo, elsewhere} {
			in := forgetest.Must(w.Forge.Installation(t.Context(), r.Installation))(t)
			got[in.Account.Login] = nil
			for _, l := range in.MissingPermissions() {
				got[in.Account.Login] = append(got[in.Account.Login], l.Permission)
			}
		}
		if diff := cmp.Diff(map[string][]string{"octo": nil, "initech": {"contents"}}, got); diff != "" {
			t.Errorf("missing permissions (-want +got):\n%s", diff)
		}
	}
}

// TestPermissionsDifferBetweenRepositories checks two people who have opposite permissions in two repositories.
func TestPermissionsDifferBetweenRepositories(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	beside, elsewhere := w.Neighbors(t)
	for _, r := range []forge.Repo{w.Repo, beside, elsewhere} {
		for _, login := range []string{"wendy", "rita"} {
			u, _ := w.User(login)
			want := (login == "wendy") == (r == w.Repo)
			if got := forgetest.Must(w.Forge.Permission(t.Context(), r, login, u.ID))(t); got.CanWrite() != want {
				t.Errorf("%s in %s: %s", login, r.FullName(), got)
			}
		}
	}
}
