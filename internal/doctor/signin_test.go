package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/forge"
)

// TestSignIn: the doctor says whether people can sign in, and what is missing.
func TestSignIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg    doctor.SignIn
		client string
		status doctor.Status
		found  string
	}{
		"on":                   {doctor.SignIn{On: true, Secret: true, Operators: 2}, "Iv1", doctor.OK, "2 operators"},
		"its callback":         {doctor.SignIn{On: true, Secret: true}, "Iv1", doctor.OK, "https://errand.example.org/login/github/callback"},
		"on without an ID":     {doctor.SignIn{On: true, Secret: true}, "", doctor.Failed, "client ID"},
		"off with a secret":    {doctor.SignIn{Secret: true}, "Iv1", doctor.Note, "github.client_secret is set"},
		"off without a secret": {doctor.SignIn{}, "Iv1", doctor.OK, "admin token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hub{app: forge.App{ID: 7, ClientID: c.client, Permissions: granted(), Events: forge.Events()}}
			cfg := doctor.GitHubConfig{AppID: 7, PublicURL: "https://errand.example.org", Version: "devel", Now: time.Now, SignIn: c.cfg}
			got := findings(t, doctor.GitHubCheck(h, cfg), "github.sign_in")
			if len(got) != 1 || got[0].Status != c.status || !strings.Contains(got[0].Found, c.found) || (got[0].Fix == "") != (c.status == doctor.OK) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
