package pack

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner/work"
)

// Spec is the input of `errand-runner pack`.
type Spec struct {
	// Dir is the absolute path of the checkout.
	Dir string `json:"dir"`
	// Home is the agent's home directory; empty means that of the calling user.
	Home string `json:"home,omitempty"`
	// Base is the commit that the new VM's checkout will have: the published head, or the commit at which the branch
	// began. Objects reachable from it are not transferred.
	Base string `json:"base"`
	// Sessions are files and folders of the agent's sessions, relative to Home, as the adapter lists them. Only paths
	// below SessionRoots are allowed. Empty means all of SessionRoots.
	Sessions []string `json:"sessions,omitempty"`
	// Keep are caches to transfer: folders or files, "~/…" in Home, other paths in the checkout. They are included in
	// this order as long as they fit. See [CheckKeep].
	Keep []string `json:"keep,omitempty"`
	// Limit and KeepLimit bound the total bytes and those of Keep; zero means the default.
	Limit     int64 `json:"limit,omitempty"`
	KeepLimit int64 `json:"keep_limit,omitempty"`
}

// UnpackSpec is the input of `errand-runner unpack`, on one line before the stream.
type UnpackSpec struct {
	// Dir is the checkout, which work.Prepare has created at a commit that contains the stream's base, or from whose
	// remote the base can be fetched. Home is as in Spec.
	Dir  string `json:"dir"`
	Home string `json:"home,omitempty"`
	// Source is the remote of the base, in case it is missing. Without a URL nothing is fetched.
	work.Source
	// Keep lists the caches that may be restored; others in the stream are left out.
	Keep []string `json:"keep,omitempty"`
	// Limit bounds the bytes of the stream before compression; zero means the default.
	Limit int64 `json:"limit,omitempty"`
}

// SessionRoots returns the folders below a home directory in which agents store sessions. Besides these, only paths in
// Keep are transferred from a home directory.
func SessionRoots() []string { return []string{".claude/projects", ".codex/sessions", ".gemini/tmp"} }

// privateNames returns the names in a home directory in which no cache may lie.
func privateNames() []string {
	return []string{
		".ssh", ".errand", ".claude", ".codex", ".gemini", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc",
		".git-credentials", ".gitconfig", ".npmrc", ".pypirc", ".profile", ".bashrc", ".bash_profile", ".config",
	}
}

// CheckKeep returns an error unless a path may be kept: "~/…" in the home directory except folders with credentials and
// settings, or a relative path in the checkout except git's own.
func CheckKeep(p string) error {
	rest, home := strings.CutPrefix(p, "~/")
	switch first, _, _ := strings.Cut(rest, "/"); {
	case p == "" || p == "~" || strings.ContainsAny(p, "\x00\n") || len(p) > 1000:
		return fmt.Errorf("keep %q: give a path on one line", truncate(p, 100))
	case rest != path.Clean(rest) || rest == "." || !filepath.IsLocal(rest):
		return fmt.Errorf("keep %q: write a plain path within the checkout, or ~/ and a path within the home directory", p)
	case home && slices.Contains(privateNames(), first):
		return fmt.Errorf("keep %q: %s is never kept", p, first)
	case !home && strings.EqualFold(first, ".git"):
		return fmt.Errorf("keep %q: git's own folder is not kept", p)
	}
	return nil
}

// isSession reports whether a path relative to the home directory is that of a session.
func isSession(name string) bool {
	return slices.ContainsFunc(SessionRoots(), func(root string) bool { return name == root || strings.HasPrefix(name, root+"/") })
}

func (s Spec) withDefaults() (Spec, error) {
	if s.Limit <= 0 {
		s.Limit = DefaultLimit
	}
	if s.KeepLimit <= 0 {
		s.KeepLimit = min(DefaultKeepLimit, s.Limit)
	}
	var err error
	if s.Home, err = homeOr(s.Home); err != nil {
		return s, err
	}
	if !filepath.IsAbs(s.Dir) {
		return s, fmt.Errorf("directory %q is not absolute", s.Dir)
	}
	if !changeset.IsID(s.Base) {
		return s, fmt.Errorf("%q is not a commit id", s.Base)
	}
	s.Dir, s.Home = filepath.Clean(s.Dir), filepath.Clean(s.Home)
	if len(s.Sessions) == 0 {
		s.Sessions = SessionRoots()
	}
	for _, name := range s.Sessions {
		if !filepath.IsLocal(name) || name != path.Clean(name) || !isSession(name) {
			return s, fmt.Errorf("%q is not a session folder", name)
		}
	}
	return s, checkAllKeep(s.Keep)
}

func (s UnpackSpec) withDefaults() (UnpackSpec, error) {
	if s.Limit <= 0 {
		s.Limit = DefaultLimit
	}
	var err error
	if s.Home, err = homeOr(s.Home); err != nil {
		return s, err
	}
	if !filepath.IsAbs(s.Dir) {
		return s, fmt.Errorf("directory %q is not absolute", s.Dir)
	}
	s.Dir, s.Home = filepath.Clean(s.Dir), filepath.Clean(s.Home)
	return s, checkAllKeep(s.Keep)
}

func checkAllKeep(keep []string) error {
	if len(keep) > maxRefs {
		return errors.New("keep: too many paths")
	}
	for _, p := range keep {
		if err := CheckKeep(p); err != nil {
			return err
		}
	}
	return nil
}

func homeOr(home string) (string, error) {
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("find home directory: %w", err)
		}
	}
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("home directory %q is not absolute", home)
	}
	return home, nil
}
