package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"
)

// TestAppIsCreatedOnlyByConfirmation posts a manifest as another site does: nothing happens before the visitor confirms it.
func TestAppIsCreatedOnlyByConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.Sim.App().ID
	manifest := `{"name": "errand of octo", "url": "https://example.org", "redirect_url": "http://127.0.0.1:8099/created"}`
	post := func(path string, fields url.Values) (status int, location, text string) {
		hc := http.Client{Transport: webtest.Transport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := hc.PostForm(w.URL+path, fields)
		check(t, err)
		p := w.browse("octo").read(resp, err)
		return p.status, resp.Header.Get("Location"), p.body
	}
	for path, want := range map[string]int{
		"/settings/apps/new?state=abc": http.StatusOK, "/organizations/nobody/settings/apps/new?state=abc": http.StatusNotFound,
	} {
		status, _, text := post(path, url.Values{"manifest": {manifest}})
		if status != want || want == http.StatusOK && (!strings.Contains(text, `name="state" value="abc"`) || !strings.Contains(text, "Create GitHub App for")) {
			t.Errorf("%s: status %d\n%s", path, status, text)
		}
	}
	if status, _, _ := post("/settings/apps/new", url.Values{"manifest": {"{}"}}); status != http.StatusUnprocessableEntity {
		t.Errorf("an empty manifest: status %d", status)
	}
	if status, location, _ := post("/settings/apps/new", url.Values{"manifest": {manifest}, "act": {"create"}}); status != http.StatusForbidden || location != "" {
		t.Errorf("a confirmation by another site: status %d, to %q", status, location)
	}
	if w.Sim.App().ID != before {
		t.Error("an App was created")
	}
}
