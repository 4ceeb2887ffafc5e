package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
)

// rerun notes where errand cannot re-run failed GitHub Actions jobs. The permission for it is optional, and errand setup does not request it.
func (c *githubCheck) rerun(installations []forge.Installation) {
	f := Finding{Check: "github.rerun", Status: OK, Found: "errand can re-run failed GitHub Actions jobs."}
	var lacking []string
	for _, in := range installations {
		if !in.Suspended && lacksRerun(in) {
			lacking = append(lacking, in.Account.Login)
		}
	}
	switch {
	case lacksRerun(forge.Installation{Permissions: c.app.Permissions}):
		f.Found = "The App does not request the optional permission actions: write, so errand cannot re-run failed GitHub Actions jobs."
		f.Fix = fmt.Sprintf("To allow it, open %s/permissions, set Actions to Read and write, and save. Then an owner of each account has to accept the new permission.", c.app.SettingsURL)
	case len(lacking) > 0:
		f.Found = "These accounts have not granted the optional permission actions: write, so errand cannot re-run their failed GitHub Actions jobs: " +
			strings.Join(lacking[:min(len(lacking), maxExamined)], ", ") + "."
		f.Fix = "To allow it, an owner of each account has to accept the new permission, in the account's settings under GitHub Apps."
	default:
		c.add(f)
		return
	}
	f.Status, f.Meaning = Note, "When a job fails, a comment asks a person to re-run it, to find out whether it is flaky."
	c.add(f)
}

// lacksRerun reports whether an installation does not grant the permission to re-run jobs.
func lacksRerun(in forge.Installation) bool {
	return slices.ContainsFunc(in.MissingPermissions(forge.RerunPermission()), func(m forge.MissingPermission) bool {
		return m.AppPermission == forge.RerunPermission()
	})
}
