package git

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto/sha1" // git's object ids
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// looseStore reads and writes the loose objects and references of a repository, which are one file each.
//
// A git process takes some milliseconds, and each request would need several. In small repositories, nearly everything
// is loose. The result known is false if the store cannot answer, as with packed objects, packed references and unusual
// names; the caller then runs git.
type looseStore struct{ dir string }

// object returns the type and the content of an object.
func (s looseStore) object(sha string) (kind string, body []byte, known bool) {
	if !ValidSHA(sha) {
		return "", nil, false
	}
	f, err := os.Open(filepath.Join(s.dir, "objects", sha[:2], sha[2:]))
	if err != nil {
		return "", nil, false
	}
	defer func() { _ = f.Close() }() // it was only read
	z, err := zlib.NewReader(f)
	if err != nil {
		return "", nil, false
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return "", nil, false
	}
	head, body, ok := bytes.Cut(raw, []byte{0})
	kind, _, _ = strings.Cut(string(head), " ")
	return kind, body, ok
}

// writeObject stores an object and returns its id.
func (s looseStore) writeObject(kind string, body []byte) (string, error) {
	raw := append(fmt.Appendf(nil, "%s %d\x00", kind, len(body)), body...)
	sum := sha1.Sum(raw)
	sha := hex.EncodeToString(sum[:])
	dir := filepath.Join(s.dir, "objects", sha[:2])
	path := filepath.Join(dir, sha[2:])
	if _, err := os.Stat(path); err == nil {
		return sha, nil
	}
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err == nil {
		_, err = z.Write(raw)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = WriteFile(path, packed.Bytes())
	}
	if err != nil {
		return "", fmt.Errorf("write git object: %w", err)
	}
	return sha, nil
}

// hasPackedRefs reports whether the repository may have references that are not loose.
func (s looseStore) hasPackedRefs() bool {
	_, err := os.Stat(filepath.Join(s.dir, "packed-refs"))
	return !errors.Is(err, fs.ErrNotExist)
}

// ref returns the object that a full reference name points to, or "" if there is no such reference.
func (s looseStore) ref(name string) (sha string, known bool) {
	if !ValidRef(name) {
		return "", false
	}
	text, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", !s.hasPackedRefs()
	}
	sha = strings.TrimSuffix(string(text), "\n")
	return sha, err == nil && ValidSHA(sha)
}

// refs lists the references below a prefix, sorted by name.
func (s looseStore) refs(prefix string) (list []Ref, known bool) {
	if s.hasPackedRefs() {
		return nil, false
	}
	below := strings.TrimSuffix(prefix, "/") + "/"
	err := filepath.WalkDir(filepath.Join(s.dir, "refs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if name != prefix && !strings.HasPrefix(name, below) {
			return nil
		}
		sha, ok := s.ref(name)
		kind, _, found := s.object(sha)
		if !ok || !found {
			return fmt.Errorf("%s is not loose", name)
		}
		list = append(list, Ref{Name: name, SHA: sha, Type: kind})
		return nil
	})
	slices.SortFunc(list, func(a, b Ref) int { return cmp.Compare(a.Name, b.Name) })
	return list, err == nil
}

// writeRef points a reference at an existing object. It reports whether it could.
func (s looseStore) writeRef(name, sha string) bool {
	if !ValidRef(name) || !ValidSHA(sha) || sha == ZeroSHA {
		return false
	}
	kind, _, known := s.object(sha)
	if !known || s.hasPackedRefs() || kind != "commit" && strings.HasPrefix(name, "refs/heads/") {
		return false
	}
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return false
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) // the same lock as git uses
	if err != nil {
		return false
	}
	_, err = lock.WriteString(sha + "\n")
	err = errors.Join(err, lock.Close())
	if err == nil {
		err = os.Rename(lock.Name(), path)
	}
	if err != nil {
		_ = os.Remove(lock.Name()) // best effort: git will report the problem
	}
	return err == nil
}

// resolve returns the commit that a full id or a reference names, or "" if there is none.
func (s looseStore) resolve(rev string) (sha string, known bool) {
	sha = rev
	if !ValidSHA(rev) {
		if sha, known = s.ref(rev); !known || sha == "" {
			return "", known
		}
	}
	kind, _, known := s.object(sha)
	return sha, known && kind == "commit"
}

// named returns the object that an id or a full reference names, also with a path ("ID:PATH"), "^{}" or "^{tree}" after
// it, or "" if there is none.
func (s looseStore) named(name string) (sha string, known bool) {
	if ValidSHA(name) {
		return name, true // git does not check that it exists either
	}
	if rev, path, hasPath := strings.Cut(name, ":"); hasPath {
		return s.at(rev, path)
	}
	if id, ok := strings.CutSuffix(name, "^{}"); ok {
		kind, _, known := s.object(id)
		return id, known && kind != "tag"
	}
	if id, ok := strings.CutSuffix(name, "^{tree}"); ok {
		n, known := s.tree(id)
		return n.sha, known
	}
	return s.ref(name)
}

// commit returns a commit.
func (s looseStore) commit(sha string) (c *Commit, known bool) {
	kind, body, known := s.object(sha)
	head, message, ok := strings.Cut(string(body), "\n\n")
	if !known || kind != "commit" || !ok || strings.HasPrefix(message, "\n") || strings.ContainsAny(message, "\x1e\x1f\x00\r") {
		return nil, false
	}
	c = &Commit{SHA: sha, Parents: []string{}, Message: strings.TrimRight(message, "\n")}
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.Author, ok = parseIdentity(value)
		case "committer":
			c.Committer, known = parseIdentity(value)
		default:
			return nil, false // such as an encoding or a signature
		}
	}
	return c, ok && known
}

// parseIdentity parses NAME <EMAIL> SECONDS ZONE.
func parseIdentity(s string) (who Identity, ok bool) {
	name, rest, hasEmail := strings.Cut(s, " <")
	email, when, hasTime := strings.Cut(rest, "> ")
	seconds, _, _ := strings.Cut(when, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	return Identity{Name: name, Email: email, At: time.Unix(at, 0).UTC()}, hasEmail && hasTime && err == nil
}

// isAncestor reports whether the commit old is reachable from new.
func (s looseStore) isAncestor(old, new string) (is, known bool) {
	if !ValidSHA(old) {
		return false, false
	}
	seen := map[string]bool{}
	for next := []string{new}; len(next) > 0; {
		sha := next[0]
		next = next[1:]
		if seen[sha] {
			continue
		}
		seen[sha] = true
		c, ok := s.commit(sha)
		if !ok {
			return false, false
		}
		if sha == old {
			return true, true
		}
		next = append(next, c.Parents...)
	}
	_, isCommit := s.commit(old)
	return false, isCommit
}
