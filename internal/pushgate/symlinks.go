package pushgate

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// maxBaseLinks bounds the links of the base that are checked because a new link may redirect them.
const maxBaseLinks = 100

// lookup returns the target of the link at a path. ok is false if there is no link.
type lookup func(path string) (target string, ok bool)

// maxLinkSteps is the maximum number of links followed in one resolution, as in Linux.
const maxLinkSteps = 40

// checkSymlinks refuses links that lead out of the tree or into git's directory: by themselves in any commit, or
// through other links in the final tree.
func checkSymlinks(s *subject) []Refusal {
	var refusals []Refusal
	refuse := func(path, detail string) {
		refusals = append(refusals, Refusal{
			Rule: RuleSymlinks, Path: path, Detail: detail, Remedy: "link to a file inside the repository by a relative path, or copy it",
		})
	}
	touched := map[string]bool{}
	s.eachChange(func(_ checkedCommit, change changeset.Change) {
		if change.Mode != changeset.ModeSymlink {
			return
		}
		touched[foldName(change.Path)] = true
		target, ok := s.blobContent(change.Blob)
		if !ok {
			return // checkModes reports it
		}
		if detail := targetProblem(string(target)); detail != "" {
			refuse(change.Path, detail)
			return
		}
		if _, detail := resolveLink(noLinks, change.Path, string(target)); detail != "" {
			refuse(change.Path, detail)
		}
	})
	if len(touched) == 0 {
		return refusals
	}
	links := s.symlinkLookup()
	for _, from := range s.linksToFollow(touched) {
		target, ok := links(from)
		if !ok {
			continue
		}
		visited, detail := resolveLink(links, from, target)
		concerned := touched[foldName(from)]
		for _, link := range visited {
			concerned = concerned || touched[foldName(link)]
		}
		if concerned && detail != "" && targetProblem(target) == "" {
			refuse(from, detail)
		}
	}
	return refusals
}

// symlinkLookup returns a lookup over the known links of the final tree, under any spelling that some file system
// treats as equal. It reads each target at most once and only on demand, because reading may call GitHub.
func (s *subject) symlinkLookup() lookup {
	spelled := map[string]string{} // folded → the smallest spelling
	for p, entry := range s.final {
		if known, ok := spelled[foldName(p)]; entry.Mode == changeset.ModeSymlink && (!ok || p < known) {
			spelled[foldName(p)] = p
		}
	}
	seen := map[string]*string{}
	return func(p string) (string, bool) {
		if _, exact := s.final[p]; !exact {
			p = spelled[foldName(p)]
		}
		if target, ok := seen[p]; ok {
			return targetOf(target)
		}
		seen[p] = nil
		if entry, ok := s.final[p]; ok && entry.Mode == changeset.ModeSymlink {
			if data, ok := s.blobContent(entry.Blob); ok {
				target := string(data)
				seen[p] = &target
			}
		}
		return targetOf(seen[p])
	}
}

func targetOf(target *string) (string, bool) {
	if target == nil {
		return "", false
	}
	return *target, true
}

// linksToFollow returns the touched links and, up to maxBaseLinks, the links of the base that they may redirect.
func (s *subject) linksToFollow(touched map[string]bool) []string {
	var list []string
	old := 0
	for _, p := range slices.Sorted(maps.Keys(s.final)) {
		if s.final[p].Mode != changeset.ModeSymlink {
			continue
		}
		if !touched[foldName(p)] {
			if old++; old > maxBaseLinks {
				continue
			}
		}
		list = append(list, p)
	}
	return list
}

func targetProblem(target string) string {
	switch {
	case target == "" || strings.ContainsRune(target, 0) || len(target) > maxPathBytes:
		return "the link's target is not a path"
	case strings.HasPrefix(target, "/"), len(target) > 1 && target[1] == ':':
		return "the link's target is absolute"
	case strings.Contains(target, `\`):
		return "the link's target has a backslash, which is a separator on Windows"
	}
	return ""
}

func noLinks(string) (string, bool) { return "", false }

// resolveLink resolves a link component by component, as a kernel does. It returns the other links that it passed
// through and the problem, or "".
func resolveLink(links lookup, from, target string) (visited []string, detail string) {
	at := splitPath(path.Dir(from))
	todo := splitPath(target)
	for steps := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if name == ".." {
			if len(at) == 0 {
				return visited, "the link leads out of the repository"
			}
			at = at[:len(at)-1]
			continue
		}
		if isGitDir(name) {
			return visited, "the link leads into git's own directory"
		}
		at = append(at[:len(at):len(at)], name)
		next, isLink := links(strings.Join(at, "/"))
		if !isLink {
			continue
		}
		visited = append(visited, strings.Join(at, "/"))
		if steps++; steps > maxLinkSteps {
			return visited, fmt.Sprintf("the link does not end within %d steps", maxLinkSteps)
		}
		if strings.HasPrefix(next, "/") {
			return visited, "the link leads out of the repository"
		}
		at = at[:len(at)-1]
		todo = append(splitPath(next), todo...)
	}
	return visited, ""
}

// splitPath splits a path and drops empty and "." components.
func splitPath(p string) []string {
	var out []string
	for name := range strings.SplitSeq(p, "/") {
		if name != "" && name != "." {
			out = append(out, name)
		}
	}
	return out
}
