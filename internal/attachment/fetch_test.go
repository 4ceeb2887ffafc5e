package attachment

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const png = "\x89PNG\r\n\x1a\n and so on"

// TestFetch downloads from servers of all kinds: each answers for the address of one attachment.
func TestFetch(t *testing.T) {
	t.Parallel()
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(png)) }))
	t.Cleanup(outside.Close)
	media := "/user-attachments/assets/" + one
	for name, tc := range map[string]struct {
		path   string // default: media
		serve  http.HandlerFunc
		want   string // the reason
		name   string
		within time.Duration
	}{
		"PNG":  {serve: content(png), name: one + ".png"},
		"JPEG": {serve: content("\xff\xd8\xff\xe0\x00\x10JFIF"), name: one + ".jpg"},
		"GIF":  {serve: content("GIF89a..."), name: one + ".gif"},
		"WebP": {serve: content("RIFF\x00\x00\x00\x00WEBPVP8 "), name: one + ".webp"},
		"another type in the header": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(png))
		}, name: one + ".png"},
		"a page that claims to be an image": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("<html><script>alert(1)</script>"))
		}, want: ReasonKind},
		"SVG":                   {serve: content(`<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>`), want: ReasonKind},
		"a video":               {serve: content("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"), want: ReasonKind},
		"nothing":               {serve: content(""), want: ReasonEmpty},
		"just not too large":    {serve: content(png + strings.Repeat(".", MaxBytes-len(png))), name: one + ".png"},
		"a byte too large":      {serve: content(png + strings.Repeat(".", MaxBytes-len(png)+1)), want: ReasonSize},
		"endless":               {serve: endless, want: ReasonSize},
		"cut off":               {serve: cutOff, want: ReasonFailed},
		"silent":                {serve: silent, want: ReasonFailed, within: 100 * time.Millisecond},
		"silent in the middle":  {serve: silentInTheMiddle, want: ReasonFailed, within: 100 * time.Millisecond},
		"expired":               {serve: status(http.StatusNotFound), want: ReasonSession},
		"forbidden":             {serve: status(http.StatusForbidden), want: ReasonSession},
		"an error":              {serve: status(http.StatusInternalServerError), want: ReasonRefused},
		"no content":            {serve: status(http.StatusNoContent), want: ReasonRefused},
		"redirect to metadata":  {serve: redirect("http://169.254.169.254/latest/meta-data/"), want: ReasonRedirect},
		"redirect to loopback":  {serve: redirect(outside.URL + media), want: ReasonRedirect},
		"redirect to a host":    {serve: redirect("https://example.org" + media), want: ReasonRedirect},
		"redirect to GitHub":    {serve: redirect("https://github.com" + media), want: ReasonRedirect},
		"redirect to a file":    {serve: redirect("file:///etc/passwd"), want: ReasonRedirect},
		"redirect to a sign-in": {serve: redirect("/login?return_to=x"), want: ReasonRedirect},
		"redirects without end": {serve: redirect(media), want: ReasonRedirect},
		"redirect to storage": {serve: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == media {
				redirect("/storage/user/1/files/"+one+"?token=x")(w, r)
				return
			}
			if r.Header.Get("Referer") != "" {
				http.Error(w, "with a referer", http.StatusBadRequest)
				return
			}
			_, _ = w.Write([]byte(png))
		}, name: one + ".png"},
		"a log":             {path: "/user-attachments/files/12/build.log", serve: content("exit status 1"), name: "12-build.log"},
		"a page for a log":  {path: "/user-attachments/files/12/build.log", serve: content("<!DOCTYPE html><html>Sign in"), want: ReasonPage},
		"a page":            {path: "/user-attachments/files/12/report.html", serve: content("<!DOCTYPE html><html>Report"), name: "12-report.html"},
		"an endless log":    {path: "/user-attachments/files/12/build.log", serve: endless, want: ReasonSize},
		"a log for members": {path: "/user-attachments/files/12/build.log", serve: status(http.StatusNotFound), want: ReasonSession},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tokens atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
					tokens.Add(1)
				}
				tc.serve(w, r)
			}))
			t.Cleanup(server.Close)
			c := newClient(t, server.URL)
			if tc.within > 0 {
				c.timeout = tc.within
			}
			path := tc.path
			if path == "" {
				path = media
			}
			refs := c.Find(server.URL + path)
			if len(refs) != 1 {
				t.Fatalf("attachments: %v", refs)
			}
			file, reason, err := c.Fetch(t.Context(), refs[0], refs)
			if err != nil || reason != tc.want || file.Name != tc.name {
				t.Errorf("got %q, reason %q, error %v; want %q, reason %q", file.Name, reason, err, tc.name, tc.want)
			}
			if (reason == "") != (len(file.Content) > 0) {
				t.Errorf("%d bytes with reason %q", len(file.Content), reason)
			}
			if tokens.Load() > 0 {
				t.Error("a token was sent")
			}
		})
	}
}

func content(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(s)) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// endless claims to send little, in chunks, and does not stop.
func endless(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(png))
	for chunk := bytes.Repeat([]byte("."), 64<<10); r.Context().Err() == nil; {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func cutOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte(png))
}

func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func silentInTheMiddle(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(png))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// TestOnlyShownAttachmentsAreFetched: an attachment that GitHub does not show in the text has no address to read it from.
func TestOnlyShownAttachmentsAreFetched(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://git.example.org")
	ref := Ref{ID: one, URL: "https://git.example.org/user-attachments/assets/" + one, Media: true}
	for name, shown := range map[string]string{
		"nothing":         "",
		"another":         "https://git.example.org/user-attachments/assets/" + two,
		"its common form": "https://github.com/user-attachments/assets/" + one,
	} {
		if _, reason, err := c.Fetch(t.Context(), ref, c.Find(shown)); reason != ReasonNotShown || err != nil {
			t.Errorf("%s: reason %q, error %v", name, reason, err)
		}
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(silent))
	t.Cleanup(server.Close)
	c := newClient(t, server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refs := c.Find(server.URL + "/user-attachments/assets/" + one)
	if _, reason, err := c.Fetch(ctx, refs[0], refs); !errors.Is(err, context.Canceled) || reason != "" {
		t.Errorf("reason %q, error %v", reason, err)
	}
}

// TestRedirectsOfGitHub: github.com redirects to buckets that no text can name.
func TestRedirectsOfGitHub(t *testing.T) {
	t.Parallel()
	c := newClient(t, "https://github.com")
	for address, want := range map[string]bool{
		"https://objects.githubusercontent.com/github-production-repository-file-5c1aeb/1/2?X-Amz-Signature=a": true,
		"https://github-production-repository-file-5c1aeb.s3.amazonaws.com/1/2?X-Amz-Signature=a":              true,
		"https://github-production-user-asset-6210df.s3.amazonaws.com/1/2.png?X-Amz-Signature=a":               true,
		"https://private-user-images.githubusercontent.com/1/2-" + one + ".png?jwt=a":                          true,
		"http://objects.githubusercontent.com/github-production-repository-file-5c1aeb/1/2":                    false,
		"https://objects.githubusercontent.com/github-production-release-asset-2e65be/1/2":                     false,
		"https://other.s3.amazonaws.com/1/2":                                                                   false,
		"https://raw.githubusercontent.com/acme/app/main/x":                                                    false,
		"https://github.com/login":                               false,
		"https://169.254.169.254/user-attachments/assets/" + one: false,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.checkRedirect(req, nil) == nil; got != want {
			t.Errorf("redirect to %s: accepted is %v, want %v", address, got, want)
		}
	}
}
