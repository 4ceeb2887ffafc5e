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

// Spec is what `errand-runner pack` reads.
type Spec struct {
	// Dir is the checkout, absolute.
	Dir string `json:"dir"`
	// Home is the agent's home directory; empty is that of the user who packs.
	Home string `json:"home,omitempty"`
	// Base is the commit that the new VM's checkout will have: the published head, or the commit at
	// which the branch began. What it reaches is not carried.
	Base string `json:"base"`
	// Sessions are files and folders of the agent's sessions, relative to Home, as the adapter lists
	// them. Only what lies below SessionRoots is taken. Empty takes all that lies there.
	Sessions []string `json:"sessions,omitempty"`
	// Keep are caches to carry: folders or files, "~/…" in Home, anything else in the checkout. They
	// are taken in this order for as long as they fit. See CheckKeep.
	Keep []string `json:"keep,omitempty"`
	// Limit and KeepLimit bound the bytes in all and those of Keep; zero is the default.
	Limit     int64 `json:"limit,omitempty"`
	KeepLimit int64 `json:"keep_limit,omitempty"`
}

// UnpackSpec is what `errand-runner unpack` reads, on one line before the stream.
type UnpackSpec struct {
	// Dir is the checkout, which work.Prepare has made at a commit that has the stream's base, or
	// from which the base can be fetched. Home as in Spec.
	Dir  string `json:"dir"`
	Home string `json:"home,omitempty"`
	// Source is where the base is fetched from if it is not there. Without a URL nothing is fetched.
	work.Source
	// Keep are the caches that may be put back; others in the stream are left out.
	Keep []string `json:"keep,omitempty"`
	// Limit bounds the bytes of the stream before compression; zero is the default.
	Limit int64 `json:"limit,omitempty"`
}

// SessionRoots are the folders below a home directory in which agents keep sessions. Nothing else of
// a home directory is carried, but for what Keep names.
func SessionRoots() []string { return []string{".claude/projects", ".codex/sessions", ".gemini/tmp"} }

// private are names in a home directory that no cache may lie in, whoever asks for it.
func private() []string {
	return []string{
		".ssh", ".errand", ".claude", ".codex", ".gemini", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc",
		".git-credentials", ".gitconfig", ".npmrc", ".pypirc", ".profile", ".bashrc", ".bash_profile", ".config",
	}
}

// CheckKeep returns an error unless a path may be kept: "~/…" in the home directory but not where
// credentials and settings lie, or a relative path in the checkout but not git's own.
func CheckKeep(p string) error {
	rest, home := strings.CutPrefix(p, "~/")
	switch first, _, _ := strings.Cut(rest, "/"); {
	case p == "" || p == "~" || strings.ContainsAny(p, "\x00\n") || len(p) > 1000:
		return fmt.Errorf("keep %q: give a path on one line", clip(p, 100))
	case rest != path.Clean(rest) || rest == "." || !filepath.IsLocal(rest):
		return fmt.Errorf("keep %q: write a plain path within the checkout, or ~/ and a path within the home directory", p)
	case home && slices.Contains(private(), first):
		return fmt.Errorf("keep %q: nothing is kept of %s", p, first)
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
		return s, fmt.Errorf("%q is no commit id", s.Base)
	}
	s.Dir, s.Home = filepath.Clean(s.Dir), filepath.Clean(s.Home)
	if len(s.Sessions) == 0 {
		s.Sessions = SessionRoots()
	}
	for _, name := range s.Sessions {
		if !filepath.IsLocal(name) || name != path.Clean(name) || !isSession(name) {
			return s, fmt.Errorf("%q is no place of sessions", name)
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
