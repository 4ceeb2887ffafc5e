package pack_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/errand-bot/errand/internal/runner/pack"
)

// The checkout of the benchmark: as many files as a large repository has, and as many bytes.
const (
	benchFiles = 20_000
	benchBytes = 129 << 20
)

// newLarge makes a published repository of that size, of text that compresses as source code does.
func newLarge(b *testing.B) world {
	b.Helper()
	dir := b.TempDir()
	words := bytes.Fields([]byte("func return if err nil string package import type struct for range map int error the and of data name value context"))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range benchFiles {
		folder := filepath.Join(dir, fmt.Sprintf("p%03d", i%200), fmt.Sprintf("d%02d", i/200%20))
		if i < 4000 {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		var text bytes.Buffer
		for text.Len() < benchBytes/benchFiles {
			fmt.Fprintf(&text, "%s %s%d\n", words[random.IntN(len(words))], words[random.IntN(len(words))], random.IntN(1000))
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%05d.go", i)), text.Bytes(), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	sh(b, dir, "git init -q -b main; git add -A; git commit -qm Large; git config uploadpack.allowAnySHA1InWant true")
	return world{url: "file://" + filepath.ToSlash(dir), base: sh(b, dir, "git rev-parse HEAD")}
}

// BenchmarkSleep measures the cost of transferring a small change to a large checkout, compared with packing the whole
// tree. Fetching and checking out the base is not included, because a VM without an archive does that, too.
func BenchmarkSleep(b *testing.B) {
	w := newLarge(b)
	before := w.vm(b)
	sh(b, before.dir, `echo one > new; git add new; git commit -qm One; echo two >> p001/d00/f00001.go; git add p001; echo three >> p002/d00/f00002.go
		rm p003/d00/f00003.go; echo untracked > p004/untracked; mkdir -p ../.claude/projects/-w`)
	if err := os.WriteFile(filepath.Join(before.home, ".claude/projects/-w/session.jsonl"), bytes.Repeat([]byte(`{"type":"user"}`+"\n"), 50_000), 0o600); err != nil {
		b.Fatal(err)
	}
	var stream bytes.Buffer
	b.Run("pack", func(b *testing.B) {
		for b.Loop() {
			stream.Reset()
			if _, err := pack.Pack(b.Context(), w.spec(before), &stream); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(stream.Len()), "stream-bytes")
	})
	b.Run("unpack", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			after := w.vm(b)
			b.StartTimer()
			spec := pack.UnpackSpec{Dir: after.dir, Home: after.home}
			if _, err := pack.Unpack(b.Context(), spec, bytes.NewReader(stream.Bytes())); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := os.RemoveAll(after.home); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("whole-tree-tar-zstd", func(b *testing.B) {
		var size int64
		for b.Loop() {
			size = wholeTree(b, before.home)
		}
		b.ReportMetric(float64(size), "stream-bytes")
	})
}

// wholeTree packs everything, the repository with it.
func wholeTree(b *testing.B, dir string) (size int64) {
	b.Helper()
	out := &counted{}
	z, err := zstd.NewWriter(out)
	if err != nil {
		b.Fatal(err)
	}
	t := tar.NewWriter(z)
	if err := t.AddFS(os.DirFS(dir)); err != nil {
		b.Fatal(err)
	}
	if err := t.Close(); err != nil {
		b.Fatal(err)
	}
	if err := z.Close(); err != nil {
		b.Fatal(err)
	}
	return out.n
}

type counted struct{ n int64 }

func (c *counted) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
