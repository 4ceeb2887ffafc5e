package pushgate

import (
	"fmt"

	"github.com/errand-bot/errand/internal/changeset"
)

// checkLFS refuses pointers to large files that do not exist: such a commit could be fetched but not checked out. A
// large file exists if GitHub has it, or if the changeset includes it within the limit. A pointer that the base already
// contains, under any path, is accepted.
func checkLFS(s *subject) []Refusal {
	published := s.publishedBlobs()
	var refusals []Refusal
	var total int64
	var largest changeset.Pointer
	known, at := map[changeset.Pointer]bool{}, ""
	s.eachChange(func(_ checkedCommit, change changeset.Change) {
		if change.Mode != changeset.ModeFile && change.Mode != changeset.ModeExecutable || published[change.Blob] {
			return
		}
		data, _ := s.blobContent(change.Blob)
		p, isPointer := changeset.ParsePointer(data)
		if !isPointer || s.policy.LFSObjects[p] {
			return
		}
		if r, bad := s.checkPointer(change.Path, p); bad {
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
			Rule: RuleLFS, Path: at, Detail: fmt.Sprintf("%.1f MB of new large files, of which this is the largest, and errand uploads at most %.1f MB", megabytes(total), megabytes(most)),
			Remedy: "leave some out, or have a person push them",
		})
	}
	return refusals
}

// checkPointer refuses a pointer whose large file is missing or too large.
func (s *subject) checkPointer(path string, p changeset.Pointer) (r Refusal, bad bool) {
	r = Refusal{Rule: RuleLFS, Path: path}
	object, included := s.cs.LFS[p.OID]
	switch most := s.policy.MaxLFSBytes; {
	case p.OID == "":
		r.Detail = "the file begins like an LFS pointer but is not one"
		r.Remedy = "add the content itself with `git add`, which makes the pointer"
	case p.Size > most:
		r.Detail = fmt.Sprintf("the large file has %.1f MB, and errand uploads at most %.1f MB", megabytes(p.Size), megabytes(most))
		r.Remedy = "make it smaller, or leave it as it is and have a person push it"
	case !included || int64(len(object)) != p.Size:
		r.Detail = fmt.Sprintf("the LFS object %s… it refers to is neither on the VM nor at GitHub", p.OID[:12])
		r.Remedy = "add the content itself with `git add`, which makes the pointer, or leave the file as it is"
	default:
		return Refusal{}, false
	}
	return r, true
}

// publishedBlobs returns the blobs that are already in the base or in a merged commit of the base branch.
func (s *subject) publishedBlobs() map[string]bool {
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
