package attachment

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// Limits of downloads.
const (
	MaxFiles = 10      // at a time
	MaxBytes = 5 << 20 // of one file
)

// A File is a downloaded attachment.
type File struct {
	Name    string // unique for the ID, and safe as the name of a file
	Type    string // the media type of the content
	Content []byte
}

// The reasons why an attachment is unread, for people.
const (
	ReasonNotShown = "the text on GitHub does not show it"
	ReasonSize     = "it is larger than 5 MB"
	ReasonKind     = "it is not a PNG, JPEG, GIF or WebP image"
	ReasonPage     = "GitHub answered with a page"
	ReasonEmpty    = "it is empty"
	ReasonRedirect = "its address leads to another host"
	ReasonSession  = "it can only be read with a session"
	ReasonRefused  = "GitHub refused it"
	ReasonFailed   = "GitHub could not be reached"
	ReasonCount    = "there are too many"
)

var errRedirect = errors.New("the redirect leads away from GitHub's hosts for attachments")

// checkRedirect follows redirects only to hosts that serve attachments.
func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	if s, _ := c.match(req.URL); s == nil || s.named || len(via) > 3 {
		return errRedirect
	}
	req.Header.Del("Referer") // it may contain a signature
	return nil
}

// Fetch downloads an attachment of a text. shown has the attachments that Find returns for the text as GitHub renders it:
// their addresses are signed and expire after minutes. If the attachment cannot be read, the reason is for people, and
// contains no address. An error is only that of ctx.
func (c *Client) Fetch(ctx context.Context, ref Ref, shown []Ref) (file File, reason string, err error) {
	from := ""
	for _, s := range shown {
		if s.ID == ref.ID && !s.named {
			from = s.URL
		}
	}
	if from == "" {
		return File{}, ReasonNotShown, nil
	}
	content, reason := c.get(ctx, from)
	if err := ctx.Err(); err != nil {
		return File{}, "", err
	}
	if reason != "" {
		return File{}, reason, nil
	}
	file, reason = judge(ref, content)
	return file, reason, nil
}

// get downloads from an address that match has accepted.
func (c *Client) get(ctx context.Context, from string) (content []byte, reason string) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, ReasonFailed
	}
	req.Header.Set("Accept", "*/*")
	resp, err := c.http.Do(req)
	if err != nil { // its text has the address, with the signature
		if errors.Is(err, errRedirect) {
			return nil, ReasonRedirect
		}
		return nil, ReasonFailed
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusForbidden, resp.StatusCode == http.StatusUnauthorized:
		return nil, ReasonSession
	case resp.StatusCode != http.StatusOK:
		return nil, ReasonRefused
	}
	content, err = io.ReadAll(io.LimitReader(resp.Body, MaxBytes+1))
	switch {
	case len(content) > MaxBytes:
		return nil, ReasonSize
	case err != nil:
		return nil, ReasonFailed
	}
	return content, ""
}

// judge returns the file of an attachment, or the reason why it is not one that agents get.
func judge(ref Ref, content []byte) (file File, reason string) {
	if len(content) == 0 {
		return File{}, ReasonEmpty
	}
	kind, _, _ := strings.Cut(http.DetectContentType(content), ";")
	file = File{Name: ref.ID, Type: kind, Content: content}
	if !ref.Media {
		lower := strings.ToLower(ref.ID)
		if kind == "text/html" && !strings.HasSuffix(lower, ".html") && !strings.HasSuffix(lower, ".htm") {
			return File{}, ReasonPage
		}
		return file, ""
	}
	_, ending := ImageType(content)
	if ending == "" {
		return File{}, ReasonKind
	}
	file.Name += ending
	return file, ""
}

// ImageType returns the media type of a PNG, JPEG, GIF or WebP image, and the usual ending of its name. Both are empty for
// other content. The first 512 bytes of the content are enough.
func ImageType(content []byte) (media, ending string) {
	media, _, _ = strings.Cut(http.DetectContentType(content), ";")
	ending = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}[media]
	if ending == "" {
		return "", ""
	}
	return media, ending
}
