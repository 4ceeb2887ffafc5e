package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// entry is an entry of a forged archive.
type entry struct {
	name, text string
	kind       byte
}

const someInfo = `{"format":1,"deployment":"prod","app_id":7}`

// forge makes an archive of any entries, with the right digests.
func forge(t testing.TB, list ...entry) []byte {
	t.Helper()
	var b, sums bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, e := range list {
		if e.name == sumsName && e.text == "" {
			e.text = sums.String()
		}
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o600, Size: int64(len(e.text))}
		if e.kind != tar.TypeReg {
			h.Size, h.Linkname, e.text = 0, e.text, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(e.text))
		sumLine(&sums, hex.EncodeToString(sum[:]), e.name)
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func regular(name, text string) entry { return entry{name, text, tar.TypeReg} }

// TestForgedArchivesAreRefused: an archive with right digests is refused for anything that errand does not write.
func TestForgedArchivesAreRefused(t *testing.T) {
	t.Parallel()
	info, store, sums := regular(infoName, someInfo), regular("data/errand.db", "store"), regular(sumsName, "")
	with := func(more ...entry) []entry { return append(append([]entry{info, store}, more...), sums) }
	for name, c := range map[string]struct {
		list []entry
		want string // empty: accepted
	}{
		"the least":             {with(), ""},
		"a file":                {with(regular("data/sleeps/a", "x")), ""},
		"nothing":               {nil, "truncated"},
		"no digests":            {[]entry{info, store}, "truncated"},
		"no store":              {[]entry{info, sums}, "the store is missing"},
		"no info":               {[]entry{store, sums}, "begins with"},
		"another format":        {[]entry{regular(infoName, `{"format":2,"errand":"v9"}`), store, sums}, "format 2"},
		"no JSON":               {[]entry{regular(infoName, `{`), store, sums}, infoName},
		"a huge info":           {[]entry{regular(infoName, someInfo+strings.Repeat(" ", maxInfo)), store, sums}, "too large"},
		"absolute":              {with(regular("data//etc/passwd", "x")), "not permitted"},
		"above":                 {with(regular("data/../../x", "x")), "not permitted"},
		"above, in the middle":  {with(regular("data/a/../../x", "x")), "not permitted"},
		"outside":               {with(regular("etc/passwd", "x")), "does not belong"},
		"a backslash":           {with(regular(`data/..\x`, "x")), "not permitted"},
		"a line break":          {with(regular("data/a\nb", "x")), "not permitted"},
		"a NUL":                 {with(regular("data/a\x01b", "x")), "not permitted"},
		"a long name":           {with(regular("data/"+strings.Repeat("a/", 600)+"b", "x")), "not permitted"},
		"a sandbox":             {with(regular("data/local/box/x", "x")), "reserved"},
		"a restore's own":       {with(regular("data/restore.unfinished", "x")), "reserved"},
		"a temporary file":      {with(regular("data/sleeps/.new-1", "x")), "reserved"},
		"a name twice":          {with(regular("data/a", "x"), regular("data/a", "y")), "twice"},
		"the store twice":       {with(store), "twice"},
		"a file that is folder": {with(regular("data/a", "x"), regular("data/a/b", "y")), "file and a folder"},
		"a folder that is file": {with(regular("data/a/b", "y"), regular("data/a", "x")), "twice"},
		"a symbolic link":       {with(entry{"data/a", "/etc", tar.TypeSymlink}), "no regular file"},
		"a hard link":           {with(entry{"data/a", "data/errand.db", tar.TypeLink}), "no regular file"},
		"a device":              {with(entry{"data/a", "", tar.TypeBlock}), "no regular file"},
		"a pipe":                {with(entry{"data/a", "", tar.TypeFifo}), "no regular file"},
		"a folder":              {with(entry{"data/a/", "", tar.TypeDir}), "no regular file"},
		"wrong digests":         {[]entry{info, store, regular(sumsName, "x")}, "digests do not match"},
		"one wrong digest":      {[]entry{info, store, regular(sumsName, strings.Repeat("0", 64)+"  backup.json\n"+strings.Repeat("0", 64)+"  data/errand.db\n")}, "digests do not match"},
		"more after the end":    {append(with(), regular("data/x", "x")), "more after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(t.Context(), bytes.NewReader(forge(t, c.list...)), nil)
			switch {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got error %v, want %q", err, c.want)
			case c.want != "" && name != "another format" && !errors.Is(err, ErrDamaged):
				t.Errorf("got error %v", err)
			}
		})
	}
}

// TestTamperedArchivesAreRefused: a real archive that was cut anywhere, changed in any byte, or has something appended is refused. A
// changed byte may also mean the same: then the content is the same.
func TestTamperedArchivesAreRefused(t *testing.T) {
	t.Parallel()
	data := forge(t, regular(infoName, someInfo), regular("data/errand.db", strings.Repeat("store", 300)), regular("data/a", "x"), regular(sumsName, ""))
	for n := range data {
		if _, err := Read(t.Context(), bytes.NewReader(data[:n]), nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("the first %d of %d bytes: got error %v", n, len(data), err)
		}
		changed := bytes.Clone(data)
		changed[n] ^= 0x10
		if c, err := Read(t.Context(), bytes.NewReader(changed), nil); !errors.Is(err, ErrDamaged) && !(err == nil && c.Bytes == 1501) {
			t.Errorf("byte %d changed: got %+v, error %v", n, c, err)
		}
	}
	for name, more := range map[string][]byte{"garbage": []byte("x"), "itself": data} {
		if _, err := Read(t.Context(), bytes.NewReader(append(bytes.Clone(data), more...)), nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("with %s after it: got error %v", name, err)
		}
	}
}

// TestReadEndsWithItsContext: it is no damage.
func TestReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, bytes.NewReader(forge(t)), nil); !errors.Is(err, context.Canceled) || errors.Is(err, ErrDamaged) {
		t.Errorf("got error %v", err)
	}
}

// TestSave: a file gets its name only with a complete archive in it, replaces none, and only its owner reads it.
func TestSave(t *testing.T) {
	t.Parallel()
	data := forge(t, regular(infoName, someInfo), regular("data/errand.db", "store"), regular(sumsName, ""))
	dir := t.TempDir()
	file := filepath.Join(dir, "b.tar.zst")
	save := func(data []byte, err error) error {
		_, serr := Save(t.Context(), file, func(_ context.Context, w io.Writer) error {
			_, werr := w.Write(data)
			return errors.Join(werr, err)
		})
		return serr
	}
	lost := errors.New("lost")
	if err := save(data[:50], lost); !errors.Is(err, lost) {
		t.Errorf("got error %v", err)
	}
	if err := save(data[:50], nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("got error %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := save(data, nil); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	if err := save(data, nil); !errors.Is(err, ErrExists) {
		t.Errorf("got error %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
}

// FuzzReadBackup: whatever is read, no file has a name outside of the data folder or twice, and the digests of what is accepted match.
func FuzzReadBackup(f *testing.F) {
	f.Add(forge(f, regular(infoName, someInfo), regular("data/errand.db", "store"), regular("data/a/b", "x"), regular(sumsName, "")))
	f.Add(forge(f, regular(infoName, someInfo), regular("data/errand.db", ""), regular("data/../b", "x"), regular(sumsName, "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		seen := map[string]bool{}
		c, err := Read(t.Context(), bytes.NewReader(data), func(name string, _ time.Time, r io.Reader) error {
			if !filepath.IsLocal(name) || seen[name] || strings.HasPrefix(name, "local/") {
				t.Errorf("got file %q", name)
			}
			seen[name] = true
			_, err := io.Copy(io.Discard, r)
			return err
		})
		if err == nil && (c.Files != len(seen) || c.Files == 0 || c.Info.Format != Format) {
			t.Error(fmt.Sprint("accepted ", c))
		}
	})
}
