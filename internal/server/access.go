package server

import (
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/manifest"
)

// missingPermissions lists the permissions and events that the App's installations do not grant, as last read.
func (s *Server) missingPermissions() []admin.Missing {
	var list []admin.Missing
	for _, in := range s.forge.CachedInstallations() {
		hasTeam := slices.ContainsFunc(s.cfg.Admin.Teams(), func(t config.Team) bool { return strings.EqualFold(t.Organization, in.Account.Login) })
		list = append(list, s.missingOf(in, in.Account.Login, hasTeam)...)
	}
	return list
}

// missingOf lists what an installation lacks. needsTeams states that admin.operators has a team for which it is needed.
func (s *Server) missingOf(in forge.Installation, account string, needsTeams bool) []admin.Missing {
	var list []admin.Missing
	var more []forge.AppPermission
	if needsTeams {
		more = append(more, forge.TeamPermission())
	}
	for _, l := range in.MissingPermissions(more...) {
		list = append(list, admin.Missing{
			Account: account, Permission: l.Permission, Needed: l.Level, Granted: l.Granted, Required: l.Required, For: l.For, URL: in.URL,
		})
	}
	for _, event := range in.MissingEvents(manifest.Events(s.cfg.GitHub.WithURLs().URL, s.forge.EnterpriseVersion())) {
		list = append(list, admin.Missing{Account: account, Event: event, For: "immediate notification; without it errand notices changes in a periodic sweep, or not at all", URL: in.URL})
	}
	return list
}

// logMissingPermissions logs the permissions and events that the App does not request or its installations do not grant.
func (s *Server) logMissingPermissions(me forge.App) {
	list := s.missingPermissions()
	if itself := s.missingOf(forge.Installation{Permissions: me.Permissions, Events: me.Events}, "the App's own settings", len(s.cfg.Admin.Teams()) > 0); len(itself) > 0 {
		list = append(itself, list...)
	}
	for _, m := range list {
		line := s.opts.Log.Warn().Str("account", m.Account)
		if m.Event != "" {
			line.Str("missing", m.Event).Msg("the App does not subscribe to an event")
			continue
		}
		line.Str("permission", m.Permission).Str("needed", m.Needed).Str("granted", m.Granted).Bool("required", m.Required).Str("for", m.For).Msg("the App lacks a permission")
	}
}
