package pushgate

import (
	"fmt"

	"github.com/errand-bot/errand/internal/changeset"
)

// judgeLFS refuses pointers to large files that nobody has: such a commit could be fetched but not
// checked out. A large file is there if GitHub has it, or if the changeset brings it, within the limit. A
// pointer that the base already has, under whatever path, is taken for good.
func judgeLFS(s *subject) []Refusal {
	published := s.published()
	var refusals []Refusal
	var total int64
	var largest changeset.Pointer
	known, at := map[changeset.Pointer]bool{}, ""
	s.each(func(_ judged, change changeset.Change) {
		if change.Mode != changeset.ModeFile && change.Mode != changeset.ModeExecutable || published[change.Blob] {
			return
		}
		data, _ := s.content(change.Blob)
		p, isPointer := changeset.ParsePointer(data)
		if !isPointer || s.policy.LFSObjects[p] {
			return
		}
		if r, bad := s.large(change.Path, p); bad {
			refusals = append(refusals, r)
			return
		}
		if !known[p] {
			known[p] = true
			total += p.Size
		}
		if p.Size > largest.Size {
			largest, at = p, change.Path
		}
	})
	if most := s.policy.MaxLFSBytes; total > most {
		refusals = append(refusals, Refusal{
			Rule: RuleLFS, Path: at, Detail: fmt.Sprintf("%.1f MB of new large files, of which this is the largest, and errand uploads at most %.1f MB", mb(total), mb(most)),
			Remedy: "leave some out, or have a person push them",
		})
	}
	return refusals
}

// large refuses one pointer, if its large file is not there or is too large.
func (s *subject) large(path string, p changeset.Pointer) (r Refusal, bad bool) {
	r = Refusal{Rule: RuleLFS, Path: path}
	object, brought := s.cs.LFS[p.OID]
	switch most := s.policy.MaxLFSBytes; {
	case p.OID == "":
		r.Detail = "the file begins like an LFS pointer but is none"
		r.Remedy = "add the content itself with `git add`, which makes the pointer"
	case p.Size > most:
		r.Detail = fmt.Sprintf("the large file has %.1f MB, and errand uploads at most %.1f MB", mb(p.Size), mb(most))
		r.Remedy = "make it smaller, or leave it as it is and have a person push it"
	case !brought || int64(len(object)) != p.Size:
		r.Detail = fmt.Sprintf("the LFS object %s… that it points to is neither on the VM nor at GitHub", p.OID[:12])
		r.Remedy = "add the content itself with `git add`, which makes the pointer, or leave the file as it is"
	default:
		return Refusal{}, false
	}
	return r, true
}

// published is the set of blobs that the base, or a base commit that is merged, has already.
func (s *subject) published() map[string]bool {
	if s.blobs != nil {
		return s.blobs
	}
	s.blobs = map[string]bool{}
	for _, entry := range s.policy.Base {
		s.blobs[entry.Blob] = true
	}
	for _, j := range s.commits {
		for _, entry := range j.merged {
			s.blobs[entry.Blob] = true
		}
	}
	return s.blobs
}
