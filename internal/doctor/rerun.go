package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
)

// rerun notes where errand cannot run failed jobs of GitHub Actions again. The permission for it is optional, and no App requests it from the
// start.
func (c *githubCheck) rerun(installations []forge.Installation) {
	f := Finding{Check: "github.rerun", Status: OK, Found: "errand can run failed jobs of GitHub Actions again."}
	var lacking []string
	for _, in := range installations {
		if !in.Suspended && lacksRerun(in) {
			lacking = append(lacking, in.Account.Login)
		}
	}
	switch {
	case lacksRerun(forge.Installation{Permissions: c.app.Permissions}):
		f.Found = "The App does not request the permission actions: write, so errand cannot run failed jobs of GitHub Actions again."
		f.Fix = fmt.Sprintf("If it should, open %s/permissions, choose Read and write for Actions, and save. Then an owner of each account accepts it.", c.app.SettingsURL)
	case len(lacking) > 0:
		f.Found = "These accounts do not grant actions: write, so errand cannot run failed jobs of GitHub Actions again there: " +
			strings.Join(lacking[:min(len(lacking), maxExamined)], ", ") + "."
		f.Fix = "If it should, an owner of each account accepts the permission in the settings of its installed Apps."
	default:
		c.add(f)
		return
	}
	f.Status, f.Meaning = Note, "A comment asks a person to run a failed check again, to find out whether it is flaky."
	c.add(f)
}

// lacksRerun reports whether an installation does not grant the permission to run jobs again.
func lacksRerun(in forge.Installation) bool {
	return slices.ContainsFunc(in.MissingPermissions(forge.RerunPermission()), func(m forge.MissingPermission) bool {
		return m.AppPermission == forge.RerunPermission()
	})
}
