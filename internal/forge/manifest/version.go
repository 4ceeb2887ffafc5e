package manifest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
)

// recentEvents are the events that not every Enterprise Server knows, with the first minor version of 3 that does, or 0 if no published version
// does. GitHub's descriptions of webhooks, one per version, are the source; all other events are in each of them.
var recentEvents = map[string]int{"sub_issues": 0, "issue_dependencies": 19}

var versionForm = regexp.MustCompile(`^(\d{1,4})\.(\d{1,4})(\.|$)`)

// UnknownEvents returns the events of errand that a GitHub does not know. An Enterprise Server refuses a manifest with such an event. Without a
// version it is taken for an old one.
func UnknownEvents(github, version string) []string {
	if !IsEnterpriseServer(github) {
		return nil
	}
	major, minor := 0, 0
	if m := versionForm.FindStringSubmatch(version); m != nil {
		major, _ = strconv.Atoi(m[1]) // digits
		minor, _ = strconv.Atoi(m[2])
	}
	return slices.DeleteFunc(forge.Events(), func(e string) bool {
		first, recent := recentEvents[e]
		return !recent || first > 0 && (major > 3 || major == 3 && minor >= first)
	})
}

// Events returns the events for an App of a GitHub: all that it knows.
func Events(github, version string) []string {
	unknown := UnknownEvents(github, version)
	return slices.DeleteFunc(forge.Events(), func(e string) bool { return slices.Contains(unknown, e) })
}

// ErrNotGitHub means that an address does not answer like the API of GitHub.
var ErrNotGitHub = errors.New("this is not the API of a GitHub Enterprise Server")

const (
	versionTimeout = 10 * time.Second
	maxMeta        = 4 << 20 // bytes; the answer of a server lists addresses
)

// ServerVersion asks an Enterprise Server for its version, such as 3.19.1. API is the address of the REST API. The request needs no
// authentication: a server that wants one names its version nevertheless. The error is ErrNotGitHub if something else answers there.
func ServerVersion(ctx context.Context, transport http.RoundTripper, api string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	address := strings.TrimSuffix(api, "/") + "/meta"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("ask for the version of the Enterprise Server: %w", err)
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("User-Agent", "errand")
	resp, err := transport.RoundTrip(req) // without following redirects, for example to a page for logins
	if err != nil {
		return "", fmt.Errorf("ask for the version of the Enterprise Server: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if v := resp.Header.Get(forge.VersionHeader); versionForm.MatchString(v) {
		return v, nil
	}
	var got struct {
		Version string `json:"installed_version"`
	}
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusTooManyRequests, s >= http.StatusInternalServerError:
		return "", fmt.Errorf("ask for the version of the Enterprise Server: %s answers with status %d", address, s)
	case s != http.StatusOK:
		return "", fmt.Errorf("%w: %s answers with status %d", ErrNotGitHub, address, s)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxMeta)).Decode(&got); err != nil || !versionForm.MatchString(got.Version) {
		if ctx.Err() != nil {
			return "", fmt.Errorf("ask for the version of the Enterprise Server: %w", ctx.Err())
		}
		return "", fmt.Errorf("%w: %s answers without a version", ErrNotGitHub, address)
	}
	return got.Version, nil
}
