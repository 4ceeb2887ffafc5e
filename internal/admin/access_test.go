package admin_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
)

// TestMissingPermissionsAreShown: missing permissions appear on the board, in its JSON and as a metric.
func TestMissingPermissionsAreShown(t *testing.T) {
	t.Parallel()
	missing := []admin.Missing{
		{Account: "acme", Permission: "contents", Needed: "write", Granted: "read", Required: true, For: "publishing", URL: "https://git.example/settings/installations/7"},
		{Account: "<i>", Event: "issue_comment", For: "hearing"},
	}
	url := serve(t, admin.Config{
		Store: sample(), Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }, Missing: func() []admin.Missing { return missing },
	})
	_, body := fetch(t, url+"/status", map[string]string{"Accept": "text/html"})
	want(t, body, "acme: <code>contents: write</code>, granted: read", "Tasks wait for it", `href="https://git.example/settings/installations/7"`, "&lt;i&gt;: the event <code>issue_comment</code>")
	_, body = fetch(t, url+"/status.json", nil)
	want(t, body, `"app_missing"`, `"issue_comment"`)
	status, body := fetch(t, url+"/metrics", nil)
	if status != http.StatusOK {
		t.Errorf("got status %d", status)
	}
	want(t, body, `errand_app_missing{account="acme",event="",permission="contents",required="true"} 1`)
}
