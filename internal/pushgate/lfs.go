package pushgate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// maxPointerBytes is the size that an LFS pointer stays under by its specification.
const maxPointerBytes = 1024

// The two lines of a pointer that matter.
var (
	lfsOID  = regexp.MustCompile(`(?m)^oid sha256:([0-9a-f]{64})$`)
	lfsSize = regexp.MustCompile(`(?m)^size ([0-9]+)$`)
)

// lfsVersions begin a pointer file; the second is the one of old releases.
func lfsVersions() []string {
	return []string{"version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"}
}

// judgeLFS refuses pointers to objects that nobody has: such a commit could be fetched but not
// checked out. A pointer that the base already has, under whatever path, is taken for good.
func judgeLFS(s *subject) []Refusal {
	published := s.published()
	var refusals []Refusal
	s.each(func(_ judged, change changeset.Change) {
		if change.Mode != changeset.ModeFile && change.Mode != changeset.ModeExecutable || published[change.Blob] {
			return
		}
		data, _ := s.content(change.Blob)
		oid, isPointer := parsePointer(data)
		switch {
		case !isPointer || s.policy.LFSObjects[oid]:
		case oid == "":
			refusals = append(refusals, Refusal{
				Rule: RuleLFS, Path: change.Path, Detail: "the file begins like an LFS pointer but is none",
				Remedy: "write it with `git lfs`, or check in the content itself",
			})
		default:
			refusals = append(refusals, Refusal{
				Rule: RuleLFS, Path: change.Path, Detail: fmt.Sprintf("the LFS object %s… that it points to has not been uploaded", oid[:12]),
				Remedy: "leave files that LFS keeps as they are, or have a person push this one",
			})
		}
	})
	return refusals
}

// parsePointer reports whether data is, or pretends to be, an LFS pointer, and the object's id if
// it is a valid one.
func parsePointer(data []byte) (oid string, isPointer bool) {
	if len(data) >= maxPointerBytes {
		return "", false
	}
	text := string(data)
	for _, version := range lfsVersions() {
		isPointer = isPointer || strings.HasPrefix(text, version)
	}
	if !isPointer {
		return "", false
	}
	hash, size := lfsOID.FindStringSubmatch(text), lfsSize.FindStringSubmatch(text)
	if hash == nil || size == nil {
		return "", true
	}
	if _, err := strconv.ParseInt(size[1], 10, 64); err != nil {
		return "", true
	}
	return hash[1], true
}

// published is the set of blobs that the base, or a base commit that is merged, has already.
func (s *subject) published() map[string]bool {
	blobs := map[string]bool{}
	for _, entry := range s.policy.Base {
		blobs[entry.Blob] = true
	}
	for _, j := range s.commits {
		for _, entry := range j.merged {
			blobs[entry.Blob] = true
		}
	}
	return blobs
}
