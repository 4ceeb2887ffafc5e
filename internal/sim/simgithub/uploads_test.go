package simgithub_test

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestUploads: images can be read at the signed addresses of a rendered text, for five minutes and without a token; other
// files of a public repository can be read by everybody.
func TestUploads(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := newWorld(t, func(c *simgithub.Config) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	image, err := w.Owner.Upload(repo, "a.png", []byte("image"))
	check(t, err)
	log, err := w.Owner.Upload(repo, "a b.log", []byte("log"))
	check(t, err)
	body := "![x](" + image + ") <img alt=\"y\" src=\"" + image + "\" /> [log](" + log + ") & <!-- ![x](" + image + ") -->"
	i, err := w.Owner.OpenIssue(repo, simgithub.NewIssue{Title: "Look", Body: body})
	check(t, err)
	rendered := func(accept string) string {
		t.Helper()
		req, err := w.bot.NewRequest(http.MethodGet, "repos/octo/calc/issues/1", nil)
		check(t, err)
		req.Header.Set("Accept", accept)
		var got struct {
			HTML string `json:"body_html"`
		}
		_, err = w.bot.Do(t.Context(), req, &got)
		check(t, err)
		return html.UnescapeString(got.HTML)
	}
	if got := rendered("application/vnd.github+json"); got != "" || i.Number != 1 {
		t.Errorf("without the media type: %q", got)
	}
	text := rendered("application/vnd.github.full+json")
	signed := regexp.MustCompile(`<img src="([^"]+)"`).FindAllStringSubmatch(text, -1)
	if len(signed) != 2 || !strings.Contains(signed[0][1], "token=") || !strings.Contains(text, `href="`+w.URL+"/user-attachments/files/") {
		t.Fatalf("rendered as %s", text)
	}
	get := func(address, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		check(t, err)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := webtest.Client().Do(req)
		check(t, err)
		defer func() { _ = resp.Body.Close() }()
		content, err := io.ReadAll(resp.Body)
		check(t, err)
		return resp.StatusCode, string(content)
	}
	address := signed[0][1]
	for name, tc := range map[string]struct {
		address, token string
		status         int
		content        string
	}{
		"signed":              {address, "", 200, "image"},
		"with a token":        {address, "ghs_x", 400, ""},
		"another signature":   {address + "x", "", 404, ""},
		"longer":              {regexp.MustCompile(`until=\d+`).ReplaceAllString(address, "until=9999999999"), "", 404, ""},
		"without a signature": {image, "", 404, ""},
		"a file":              {strings.ReplaceAll(log, " ", "%20"), "", 200, "log"},
		"none":                {w.URL + "/user-attachments/files/1/x", "", 404, ""},
	} {
		status, content := get(tc.address, tc.token)
		if status != tc.status || tc.content != "" && content != tc.content {
			t.Errorf("%s: got %d %q, want %d %q", name, status, content, tc.status, tc.content)
		}
	}
	ahead.Store(int64(6 * time.Minute))
	if status, _ := get(address, ""); status != 404 {
		t.Errorf("an expired address: %d", status)
	}
}
