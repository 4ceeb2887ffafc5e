package pack_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/errand-bot/errand/internal/runner/pack"
)

// TestForged: entries that Pack never writes are refused before anything is changed.
func TestForged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := pack.Manifest{Form: pack.Form, Head: w.base, Base: w.base, Branch: "refs/heads/errand/1-x", Dir: "/w", Home: "/h", Keep: []string{"node_modules"}}
	file := func(name string) pack.Forged { return pack.Forged{Name: name, Mode: 0o644, Content: "x"} }
	link := func(name, to string) pack.Forged {
		return pack.Forged{Name: name, Kind: tar.TypeSymlink, Mode: 0o777, Link: to}
	}
	tests := map[string][]pack.Forged{
		"path climbs":              {file("work/../../x")},
		"path climbs within":       {file("work/a/../b")},
		"absolute path":            {file("work//etc/passwd")},
		"path is empty":            {{Name: "keep/", Kind: tar.TypeDir, Mode: 0o755}},
		"git's folder":             {file("work/.git/hooks/pre-commit")},
		"git's folder in capitals": {file("work/sub/.GIT/config")},
		"hook among git's part":    {file("git/hooks/pre-commit")},
		"configuration":            {file("git/state/config")},
		"state climbs":             {file("git/state/../config")},
		"keys in home":             {file("home/.ssh/authorized_keys")},
		"credentials":              {file("home/.claude/.credentials.json")},
		"session climbs":           {file("home/.claude/projects/../x")},
		"link in home":             {link("home/.claude/projects/x", "/etc")},
		"folder in the checkout":   {{Name: "work/d", Kind: tar.TypeDir, Mode: 0o755}},
		"unknown part":             {file("extra/x")},
		"no part":                  {file("x")},
		"parts in disorder":        {file("home/.claude/projects/x"), file("work/x")},
		"setuid":                   {{Name: "work/x", Mode: 0o4755, Content: "x"}},
		"device":                   {{Name: "work/x", Kind: tar.TypeChar, Mode: 0o644}},
		"pipe":                     {{Name: "work/x", Kind: tar.TypeFifo, Mode: 0o644}},
		"hard link":                {{Name: "work/x", Kind: tar.TypeLink, Link: "/etc/passwd", Mode: 0o644}},
		"empty link":               {link("work/x", "")},
		"file through a link":      {link("work/a", "/etc"), file("work/a/passwd")},
		"file through a kept link": {link("keep/w0", "/etc"), file("keep/w0/passwd")},
		"links through links":      {link("work/a", "b"), link("work/b", "/etc"), file("work/a/passwd")},
		"file in a file":           {file("work/a"), file("work/a/b")},
		"twice":                    {file("work/a"), file("work/a")},
		"folder, then file":        {file("work/a/b"), file("work/a")},
		"deletes git's":            {{Name: "git/deleted", Mode: 0o600, Content: ".git/config\x00"}},
		"deletes elsewhere":        {{Name: "git/deleted", Mode: 0o600, Content: "../../x\x00"}},
		"cache without a name":     {file("keep/w7/x")},
		"cache is no number":       {file("keep/w0x/x")},
		"cache of nowhere":         {file("keep/x0/x")},
		"objects are garbage":      {file("objects/00000000")},
		"index is garbage":         {file("git/index")},
		"name is too long":         {file("work/" + strings.Repeat("x", 300))},
		"name is too long in all":  {file("work/" + strings.Repeat("x/", 3000) + "x")},
		"objects are not numbered": {file("objects/../../x")},
		"large file's name":        {file("lfs/x")},
		"large file climbs":        {file("lfs/../../config")},
		"large file in capitals":   {file("lfs/" + strings.ToUpper(oidOf("x")))},
		"large file in a folder":   {file("lfs/" + oidOf("x") + "/x")},
		"large file is a link":     {link("lfs/"+oidOf("x"), "/etc/passwd")},
		"large file is another":    {file("lfs/" + oidOf("y"))},
		"large file twice":         {file("lfs/" + oidOf("x")), file("lfs/" + oidOf("x"))},
		"manifest as an entry":     {file("manifest.json")},
	}
	v := w.vm(t)
	before := observableState(t, v, true)
	for name, entries := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := pack.Unpack(testContext(t), pack.UnpackSpec{Dir: v.dir, Home: v.home, Keep: m.Keep}, bytes.NewReader(pack.Forge(m, entries...)))
			if !errors.Is(err, pack.ErrMalformed) {
				t.Errorf("error %v", err)
			}
		})
	}
	if diff := gocmp.Diff(before, observableState(t, v, true)); diff != "" {
		t.Errorf("one of them changed (-before +after):\n%s", diff)
	}
}

// TestForgedManifest: invalid manifests are refused.
func TestForgedManifest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tests := map[string]struct {
		change func(*pack.Manifest)
		want   error
	}{
		"another form":      {func(m *pack.Manifest) { m.Form = 2 }, pack.ErrMalformed},
		"head is a name":    {func(m *pack.Manifest) { m.Head = "main" }, pack.ErrMalformed},
		"head is missing":   {func(m *pack.Manifest) { m.Head = strings.Repeat("a", 40) }, pack.ErrMalformed},
		"head is a tree":    {func(m *pack.Manifest) { m.Head = sh(t, w.dir(), "git rev-parse HEAD^{tree}") }, pack.ErrMalformed},
		"base is an option": {func(m *pack.Manifest) { m.Base = "--all" }, pack.ErrMalformed},
		"base is missing":   {func(m *pack.Manifest) { m.Base = strings.Repeat("a", 40) }, pack.ErrNoBase},
		"branch elsewhere":  {func(m *pack.Manifest) { m.Branch = "refs/remotes/origin/main" }, pack.ErrMalformed},
		"branch climbs":     {func(m *pack.Manifest) { m.Branch = "refs/heads/../../config" }, pack.ErrMalformed},
		"ref elsewhere":     {func(m *pack.Manifest) { m.Refs = []pack.Ref{{Name: "HEAD", ID: w.base}} }, pack.ErrMalformed},
		"ref climbs":        {func(m *pack.Manifest) { m.Refs = []pack.Ref{{Name: "refs/heads/../x", ID: w.base}} }, pack.ErrMalformed},
		"ref is missing": {func(m *pack.Manifest) { m.Refs = []pack.Ref{{Name: "refs/heads/x", ID: strings.Repeat("a", 40)}} },
			pack.ErrMalformed},
		"stash has lines": {func(m *pack.Manifest) { m.Stash = []pack.Ref{{Name: "a\nb", ID: w.base}} }, pack.ErrMalformed},
		"many refs":       {func(m *pack.Manifest) { m.Refs = make([]pack.Ref, 1000) }, pack.ErrMalformed},
	}
	v := w.vm(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := pack.Manifest{Form: pack.Form, Head: w.base, Base: w.base, Branch: "refs/heads/errand/1-x", Dir: "/w", Home: "/h"}
			test.change(&m)
			_, err := pack.Unpack(testContext(t), pack.UnpackSpec{Dir: v.dir, Home: v.home}, bytes.NewReader(pack.Forge(m)))
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func (w world) dir() string { return strings.TrimPrefix(w.url, "file://") }

// TestCompressionBombsAreRefused: small input that expands to very much is refused on both sides before much of it is written.
func TestCompressionBombsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.vm(t)
	m := pack.Manifest{Form: pack.Form, Head: w.base, Base: w.base}
	bomb := pack.Forge(m, pack.Forged{Name: "work/zeros", Mode: 0o644, Content: strings.Repeat("\x00", 8<<20)})
	if len(bomb) > 8<<10 {
		t.Errorf("the bomb has %d bytes", len(bomb))
	}
	if _, err := pack.Verify(bytes.NewReader(bomb), 4<<20); !errors.Is(err, pack.ErrMalformed) {
		t.Errorf("verify: %v", err)
	}
	_, err := pack.Unpack(testContext(t), pack.UnpackSpec{Dir: v.dir, Home: v.home, Limit: 4 << 20}, bytes.NewReader(bomb))
	if !errors.Is(err, pack.ErrMalformed) {
		t.Errorf("unpack: %v", err)
	}
	if _, err := pack.Verify(bytes.NewReader(bomb), 8<<20); err != nil {
		t.Errorf("verify with more room: %v", err)
	}
}

// TestInTheWay puts sessions only where no link leads elsewhere, and files in the checkout's own folders.
func TestInTheWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := t.TempDir()
	for name, commands := range map[string]string{
		"projects is a link": "mkdir .claude; ln -s " + out + " .claude/projects",
		"claude is a link":   "ln -s " + out + " .claude",
		"a link within":      "mkdir .c; ln -s .c .claude",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := w.vm(t), w.vm(t)
			sh(t, before.home, "mkdir -p .claude/projects/p; echo s > .claude/projects/p/s.jsonl")
			stream, _ := packed(t, w.spec(before))
			sh(t, after.home, commands)
			_, err := pack.Unpack(testContext(t), pack.UnpackSpec{Dir: after.dir, Home: after.home}, bytes.NewReader(stream))
			if err == nil {
				t.Error("unpacked through a link")
			}
			if entries, err := os.ReadDir(out); err != nil || len(entries) != 0 {
				t.Errorf("written elsewhere: %v, %v", entries, err)
			}
		})
	}
}

// FuzzUnpackFiles writes arbitrary entries with correct sums: files and links are only created at permitted places.
func FuzzUnpackFiles(f *testing.F) {
	f.Add("work/a\nl work/l /etc\nwork/l/x\nhome/.claude/projects/p/s\nkeep/w0/x\nkeep/h1/y\nd keep/w0/d", "deleted")
	f.Add("l work/a b\nl work/b ..\nwork/a/b/c", "a\x00b/c")
	f.Add("git/state/MERGE_MSG\ngit/deleted\nl keep/h1 ../..\nkeep/h1/x", "../x")
	f.Add("lfs/"+oidOf("content")+"\nwork/git/lfs/objects\nl work/a .git/lfs", "git/lfs")
	f.Add("work/link/x\nwork/dir/y\nl work/tree ../../canary\nl keep/w0/a ../../../canary", "tree\x00link")
	f.Fuzz(func(t *testing.T, names, deleted string) {
		forgeFiles(t, t.TempDir(), strings.Split(names, "\n"), deleted)
	})
}

// TestForgedFiles draws random entries with few names, so that they collide with existing files and with each other.
// Most of the streams could come from Pack.
func TestForgedFiles(t *testing.T) {
	t.Parallel()
	top, n := t.TempDir(), 0
	parts := rapid.SampledFrom([]string{"git/state/", "work/", "work/", "work/", "work/", "lfs/", "home/.claude/projects/", "keep/w0", "keep/w0/", "keep/h1/"})
	wildParts := rapid.SampledFrom([]string{"git/", "work/.git/", "home/", "keep/w9/", "work//"})
	names := rapid.SampledFrom([]string{"a", "a/b", "link", "link/f", "tree", "tree/canary/f", "dir", "dir/d/e", "git/config", "git/hooks/x", "MERGE_MSG"})
	wildNames := rapid.SampledFrom([]string{"..", ".git/config", "a/../b", "", "../../canary/f", "/"})
	targets := rapid.SampledFrom([]string{"a", "..", "../..", "../../..", "/", ".git", "link", "tree", "../../canary"})
	rapid.Check(t, func(r *rapid.T) {
		wild := rapid.IntRange(0, 3).Draw(r, "wild") == 0
		var lines []string
		taken := map[string]bool{}
		for range rapid.IntRange(1, 6).Draw(r, "entries") {
			part, name := parts, names
			if wild && rapid.Bool().Draw(r, "strange part") {
				part = wildParts
			}
			if wild && rapid.Bool().Draw(r, "strange name") {
				name = wildNames
			}
			full := part.Draw(r, "part")
			if full == "git/state/" {
				full += "MERGE_MSG"
			} else if full == "lfs/" && !wild {
				full += oidOf("content")
			} else if full != "keep/w0" {
				full += name.Draw(r, "name")
			}
			if !wild && overlaps(taken, full) {
				continue
			}
			taken[full] = true
			if strings.HasPrefix(full, "work/") && rapid.IntRange(0, 3).Draw(r, "link") == 0 {
				full = "l " + full + " " + targets.Draw(r, "target")
			}
			lines = append(lines, full)
		}
		slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(partRank(a), partRank(b)) })
		gone := rapid.SliceOfN(names, 0, 2).Draw(r, "deleted")
		n++
		forgeFiles(r, filepath.Join(top, fmt.Sprint(n)), lines, strings.Join(gone, "\x00"))
	})
}

// overlaps reports whether a name is among others, below one of them, or above one.
func overlaps(taken map[string]bool, name string) bool {
	for other := range taken {
		if other == name || strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return true
		}
	}
	return false
}

// partRank brings parts into their order, so that most streams are not refused for it.
func partRank(line string) int {
	line = strings.TrimPrefix(strings.TrimPrefix(line, "l "), "d ")
	return strings.Index("glwhk", line[:1])
}

// forgeFiles unpacks entries, one per line ("l NAME TARGET" a link, "d NAME" a folder), and checks for forbidden
// effects.
func forgeFiles(t interface{ Errorf(string, ...any) }, top string, lines []string, deleted string) {
	home, dir, canary := filepath.Join(top, "home"), filepath.Join(top, "home", "work"), filepath.Join(top, "canary")
	err := errors.Join(os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o755), os.Mkdir(canary, 0o755), os.WriteFile(filepath.Join(canary, "f"), []byte("c"), 0o600),
		os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("c"), 0o600), os.WriteFile(filepath.Join(home, ".bashrc"), []byte("c"), 0o600),
		os.Symlink(canary, filepath.Join(dir, "link")), os.Symlink("../..", filepath.Join(dir, "tree")), os.Symlink(".git", filepath.Join(dir, "git")),
		os.MkdirAll(filepath.Join(dir, "dir", "d"), 0o755))
	if err != nil {
		t.Errorf("set up: %v", err)
	}
	var entries []pack.Forged
	if deleted != "" {
		entries = append(entries, pack.Forged{Name: "git/deleted", Mode: 0o600, Content: deleted})
	}
	for _, line := range lines {
		e := pack.Forged{Name: line, Mode: 0o644, Content: "content"}
		if rest, ok := strings.CutPrefix(line, "l "); ok {
			e.Kind, e.Content = tar.TypeSymlink, ""
			e.Name, e.Link, _ = strings.Cut(rest, " ")
		} else if rest, ok := strings.CutPrefix(line, "d "); ok {
			e.Kind, e.Content, e.Name, e.Mode = tar.TypeDir, "", rest, 0o755
		}
		entries = append(entries, e)
	}
	id := strings.Repeat("a", 40)
	keep := []string{"cache", "~/cache"}
	err = pack.UnpackFiles(dir, home, keep, bytes.NewReader(pack.Forge(pack.Manifest{Form: pack.Form, Head: id, Base: id, Keep: keep, Dir: dir, Home: home}, entries...)))
	var strange []string
	_ = filepath.WalkDir(top, func(path string, d os.DirEntry, _ error) error {
		if rel, _ := filepath.Rel(top, path); !isAllowedLeftover(rel, d) {
			strange = append(strange, rel)
		}
		return nil
	})
	for _, path := range []string{filepath.Join(canary, "f"), filepath.Join(dir, ".git", "config"), filepath.Join(home, ".bashrc")} {
		if data, rerr := os.ReadFile(path); rerr != nil || string(data) != "c" {
			strange = append(strange, path+" was changed: "+fmt.Sprint(rerr))
		}
	}
	if len(strange) > 0 {
		t.Errorf("error %v, but: %q", err, strange)
	}
}

// isAllowedLeftover reports whether something may be where it is.
func isAllowedLeftover(rel string, d os.DirEntry) bool {
	if d.Type()&^(os.ModeDir|os.ModeSymlink) != 0 {
		return false
	}
	rest, inHome := strings.CutPrefix(rel, "home/")
	if !inHome {
		return rel == "." || rel == "home" || rel == "canary" || rel == "canary/f"
	}
	if name, inGit := strings.CutPrefix(rest, "work/.git/"); inGit {
		first, _, _ := strings.Cut(name, "/")
		oid := oidOf("content")
		large := "lfs/objects/" + oid[:2] + "/" + oid[2:4] + "/" + oid
		if first == "lfs" {
			return d.IsDir() && strings.HasPrefix(large, name+"/") || d.Type().IsRegular() && name == large
		}
		return first == "config" || name == "hooks" || strings.HasPrefix(first, "MERGE_") || strings.HasSuffix(first, "_HEAD") || strings.HasPrefix(first, "rebase-") ||
			first == "sequencer" || first == "AUTO_MERGE"
	}
	first, _, _ := strings.Cut(rest, "/")
	return first == "work" || first == ".bashrc" || first == ".errand" || first == "cache" || first == ".claude" || first == ".codex" || first == ".gemini"
}

// FuzzVerify: Verify terminates for any input, and accepts only streams with correct sums.
func FuzzVerify(f *testing.F) {
	id := strings.Repeat("a", 40)
	m := pack.Manifest{Form: pack.Form, Head: id, Base: id, Keep: []string{"c"}}
	f.Add(pack.Forge(m))
	f.Add(pack.Forge(m, pack.Forged{Name: "work/x", Mode: 0o644, Content: "x"}, pack.Forged{Name: "keep/w0/x", Mode: 0o644, Content: "y"}))
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := pack.Verify(bytes.NewReader(data), 1<<20)
		if err != nil && !errors.Is(err, pack.ErrMalformed) && !errors.Is(err, pack.ErrCut) {
			t.Errorf("error %v", err)
		}
		if err == nil && (m.Form != pack.Form || m.Bytes() > 1<<20) {
			t.Errorf("accepted %+v", m)
		}
		if err == nil && len(data) > 0 {
			if _, err := pack.Verify(bytes.NewReader(data[:len(data)-1]), 1<<20); err == nil {
				t.Error("accepted without its last byte")
			}
		}
	})
}
