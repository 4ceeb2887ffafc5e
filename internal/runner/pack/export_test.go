package pack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Steps is how many steps there are to put work back.
func Steps() int { return len((&unpacker{}).steps()) }

var errKilled = errors.New("killed")

// UnpackUpTo is Unpack by a process that dies before the n-th step, and cleans nothing up.
func UnpackUpTo(ctx context.Context, spec UnpackSpec, from io.Reader, n int) error {
	spec, err := spec.withDefaults()
	if err != nil {
		return err
	}
	u, leave, err := enter(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { // the lock ends with its process, the staged files stay
		u.dir.staged, u.home.staged = ".git/nothing", ".errand/nothing"
		leave()
	}()
	if u.m, err = read(from, spec.Limit, u.stage); err != nil {
		return err
	}
	if err := u.apply(ctx, u.steps()[:n]); err != nil {
		return err
	}
	return errKilled
}

// Forged is an entry as anybody may write it.
type Forged struct {
	Name    string // with its part
	Kind    byte   // 0 is a file
	Mode    int64
	Link    string
	Content string
}

// Forge writes a stream of these entries whose sums are right.
func Forge(m Manifest, entries ...Forged) []byte {
	var out bytes.Buffer
	z, _ := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	t := tar.NewWriter(z)
	w := &writer{ctx: context.Background(), zip: z, tar: t, manifest: &m, left: DefaultLimit}
	_ = w.writePlain(openingName, []byte("{\"form\":1}\n"))
	for _, e := range entries {
		if e.Kind == 0 {
			e.Kind = tar.TypeReg
		}
		head := &tar.Header{Typeflag: e.Kind, Name: e.Name, Linkname: e.Link, Mode: e.Mode, Size: int64(len(e.Content)), Format: tar.FormatPAX}
		parsed, _ := parse(head)
		parsed.mode = fs.FileMode(e.Mode)
		if w.sum == nil || w.sum.part.Name != parsed.part {
			w.begin(parsed.part)
		}
		if t.WriteHeader(head) != nil {
			continue
		}
		w.sum.begin(parsed)
		_, _ = t.Write([]byte(e.Content))
		_, _ = w.sum.hash.Write([]byte(e.Content))
	}
	_ = w.finish()
	return out.Bytes()
}

// UnpackFiles is Unpack without the git operations: the effects of a stream on files.
func UnpackFiles(dir, home string, keep []string, from io.Reader) error {
	if err := os.MkdirAll(dir+"/.git", 0o755); err != nil {
		return err
	}
	u := &unpacker{spec: UnpackSpec{Dir: dir, Home: home, Keep: keep, Limit: 1 << 20}, oids: map[string]bool{}}
	var err error
	if u.dir, err = openArea(dir, ".git/errand-unpack"); err != nil {
		return err
	}
	defer u.dir.close()
	if u.home, err = openArea(home, ".errand/unpack"); err != nil {
		return err
	}
	defer u.home.close()
	if u.m, err = read(from, u.spec.Limit, u.stage); err != nil {
		return err
	}
	return u.apply(context.Background(), []step{
		{"large", u.large}, {"deleted", u.deleted}, {"files", u.files}, {"state", u.state}, {"sessions", u.sessions}, {"keep", u.restoreCaches},
	})
}
