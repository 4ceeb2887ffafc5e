package pack_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner/pack"
)

// oidOf is the name of a large file.
func oidOf(content string) string {
	p, _ := changeset.PointerTo([]byte(content))
	return p.OID
}

// keeps keeps a large file as Git LFS does, and returns its pointer.
func (v vm) keeps(t testing.TB, content string) string {
	t.Helper()
	p, text := changeset.PointerTo([]byte(content))
	v.stores(t, p.OID, content)
	return text
}

// stores writes anything under the name of a large file.
func (v vm) stores(t testing.TB, oid, content string) {
	t.Helper()
	dir := filepath.Join(v.dir, ".git/lfs/objects", oid[:2], oid[2:4])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, oid), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commits lets git commit a pointer for a file whose content is in the checkout, as the filter of Git LFS does. The
// file is old, so that git treats it as unchanged without reading it.
func (v vm) commits(t testing.TB, name, content string) {
	t.Helper()
	v.write(t, "../pointer", v.keeps(t, content))
	v.write(t, name, content)
	sh(t, v.dir, `mkdir -p .git/info; echo '`+name+` filter=x' > .git/info/attributes; touch -d 2020-01-01 '`+name+`'
		git -c filter.x.clean='cat >/dev/null; cat ../pointer' add -A; git commit -qm Large; rm .git/info/attributes ../pointer; git diff-files --exit-code`)
}

func (v vm) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(v.dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// large lists the large files that a VM keeps.
func (v vm) large(t testing.TB) []string {
	t.Helper()
	return strings.Fields(sh(t, v.dir, "cd .git/lfs/objects 2>/dev/null && find . -type f -exec cat {} ';' -exec echo ' ' ';' || true"))
}

// TestLargeFiles carries those large files to which something points that is carried itself, and no others.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(t *testing.T, v vm)
		want   []string          // large files on the other VM
		files  map[string]string // in its checkout
		left   []string
	}{
		"committed": {func(t *testing.T, v vm) { v.commits(t, "a.bin", "aaa") }, []string{"aaa"}, map[string]string{"a.bin": "aaa"}, nil},
		"an older commit's": {func(t *testing.T, v vm) { v.commits(t, "a.bin", "aaa"); v.commits(t, "a.bin", "bbbb") },
			[]string{"aaa", "bbbb"}, map[string]string{"a.bin": "bbbb"}, nil},
		"staged": {func(t *testing.T, v vm) {
			v.write(t, "a.bin", v.keeps(t, "aaa"))
			sh(t, v.dir, "git add a.bin")
			v.write(t, "a.bin", "aaa")
		}, []string{"aaa"}, map[string]string{"a.bin": "aaa"}, nil},
		"stashed":         {func(t *testing.T, v vm) { v.write(t, "kept", v.keeps(t, "aaa")); sh(t, v.dir, "git stash -q") }, []string{"aaa"}, nil, nil},
		"in the checkout": {func(t *testing.T, v vm) { v.write(t, "a.bin", v.keeps(t, "aaa")) }, []string{"aaa"}, map[string]string{"a.bin": oidPointer("aaa")}, nil},
		"changed since": {func(t *testing.T, v vm) { v.commits(t, "a.bin", "aaa"); v.write(t, "a.bin", "more") },
			[]string{"aaa"}, map[string]string{"a.bin": "more"}, nil},
		"only fetched": {func(t *testing.T, v vm) { v.keeps(t, "aaa") }, nil, nil, nil},
		"not here":     {func(t *testing.T, v vm) { v.keeps(t, "other"); v.write(t, "a.bin", oidPointer("aaa")) }, nil, nil, []string{"a.bin"}},
		"another":      {func(t *testing.T, v vm) { v.write(t, "a.bin", oidPointer("aaa")); v.stores(t, oidOf("aaa"), "bbb") }, nil, nil, []string{"a.bin"}},
		"too short":    {func(t *testing.T, v vm) { v.write(t, "a.bin", oidPointer("aaa")); v.stores(t, oidOf("aaa"), "a") }, nil, nil, []string{"a.bin"}},
		"a link":       {func(t *testing.T, v vm) { v.write(t, "a.bin", v.keeps(t, "aaa")); linked(t, v, "aaa") }, nil, nil, []string{"a.bin"}},
		"a linked store": {func(t *testing.T, v vm) {
			v.write(t, "a.bin", v.keeps(t, "aaa"))
			sh(t, v.dir, "mv .git/lfs .git/lfs2; ln -s lfs2 .git/lfs")
		}, nil, nil, nil},
	}
	w := newWorld(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := w.vm(t), w.vm(t)
			test.change(t, before)
			stream, m := packed(t, w.spec(before))
			for range 2 {
				unpacked(t, after, nil, stream)
			}
			got := after.large(t)
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got, cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("large files (-want +got):\n%s", diff)
			}
			for name, want := range test.files {
				if data, err := os.ReadFile(filepath.Join(after.dir, name)); err != nil || string(data) != want {
					t.Errorf("%s holds %q, %v, want %q", name, data, err, want)
				}
			}
			var left []string
			for _, l := range m.Left {
				left = append(left, l.Path)
			}
			if diff := cmp.Diff(test.left, left); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTouchedLargeFiles: a large file that git has to compare is transferred once, and not at all if it was only
// fetched.
func TestTouchedLargeFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.vm(t), w.vm(t)
	before.commits(t, "mine.bin", "mine")
	w.base = sh(t, before.dir, "git rev-parse HEAD")
	before.commits(t, "more.bin", "more")
	sh(t, before.dir, "touch mine.bin more.bin; git diff-files --quiet || true")
	sh(t, after.dir, "git fetch -q "+before.dir+" "+w.base) // it is published, with its large file
	stream, m := packed(t, w.spec(before))
	if m.Paths != 0 {
		t.Errorf("%d files are carried as changed", m.Paths)
	}
	unpacked(t, after, nil, stream)
	if diff := cmp.Diff([]string{"more"}, after.large(t)); diff != "" {
		t.Errorf("large files (-want +got):\n%s", diff)
	}
	if got, want := sh(t, after.dir, "cat more.bin mine.bin"), "more"+strings.TrimSuffix(oidPointer("mine"), "\n"); got != want {
		t.Errorf("the checkout has %q, want %q", got, want)
	}
}

// oidPointer returns a pointer to an object that does not exist.
func oidPointer(content string) string {
	_, text := changeset.PointerTo([]byte(content))
	return text
}

// linked has a link lie where a large file was.
func linked(t *testing.T, v vm, content string) {
	t.Helper()
	oid := oidOf(content)
	sh(t, v.dir, "cd .git/lfs/objects/"+oid[:2]+"/"+oid[2:4]+"; mv "+oid+" x; ln -s x "+oid)
}

// TestLargeLimit: files beyond the limit are left out, and the others are transferred.
func TestLargeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v, after := w.vm(t), w.vm(t)
	v.write(t, "small.bin", v.keeps(t, "small"))
	oid := strings.Repeat("ab", 32)
	v.stores(t, oid, "")
	sh(t, v.dir, "truncate -s 300M .git/lfs/objects/ab/ab/"+oid)
	v.write(t, "large.bin", changeset.Pointer{OID: oid, Size: 300 << 20}.String())
	stream, m := packed(t, w.spec(v))
	if len(m.Left) != 1 || m.Left[0].Path != "large.bin" || m.Left[0].Bytes != 300<<20 || !strings.Contains(m.Left[0].Reason, "256 MiB") {
		t.Errorf("left out: %+v", m.Left)
	}
	unpacked(t, after, nil, stream)
	if diff := cmp.Diff([]string{"small"}, after.large(t)); diff != "" {
		t.Errorf("large files (-want +got):\n%s", diff)
	}
	// They count as all else does.
	spec := w.spec(v)
	spec.Limit = 200
	v.write(t, "small.bin", v.keeps(t, strings.Repeat("medium", 100)))
	if _, err := pack.Pack(testContext(t), spec, &bytes.Buffer{}); err == nil {
		t.Error("a large file went beyond the limit")
	}
}
