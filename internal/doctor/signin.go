package doctor

import (
	"fmt"

	"github.com/errand-bot/errand/internal/forge/oauth"
	"github.com/errand-bot/errand/internal/words"
)

// SignIn is the part of the configuration that concerns sign-ins with GitHub.
type SignIn struct {
	On        bool // admin.sign_in
	Secret    bool // github.client_secret is set
	Operators int  // number of admin.operators
}

// signIn checks whether people can sign in with GitHub. GitHub tells no App its callback URLs, and accepts a client secret only together
// with somebody's code, so both are tried by the first person.
func (c *githubCheck) signIn() {
	f := Finding{Check: "github.sign_in", Status: OK}
	switch {
	case c.app.ClientID == "" && c.SignIn.On:
		f.Status, f.Found = Failed, "GitHub does not name the App's client ID."
		f.Meaning = "Nobody can sign in with GitHub; the admin token works."
		f.Fix = "Update the GitHub Enterprise Server, or remove admin.sign_in."
	case c.SignIn.On:
		f.Found = fmt.Sprintf("People can sign in with GitHub, %s; the secret is set. GitHub does not say whether %s is a callback URL of the App: compare it at %s.",
			words.Many(c.SignIn.Operators, "operator"), oauth.CallbackURL(c.PublicURL), c.app.SettingsURL)
	case c.SignIn.Secret:
		f.Status, f.Found = Note, "github.client_secret is set, but people cannot sign in with GitHub."
		f.Fix = "Set admin.sign_in: true, or ignore this: the pages then need the admin token."
	default:
		f.Found = "People cannot sign in with GitHub (admin.sign_in); the pages need the admin token, or a connection to admin.listen."
	}
	c.add(f)
}
