package secrets_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxUnfold is the maximum unpacked size of a compressed stream, maxDepth the maximum nesting.
	maxUnfold = 64 << 20
	maxDepth  = 3
	// minUnfold is the minimum output that counts as compressed data rather than similar bytes.
	minUnfold = 8
)

// unfold calls see with data, and recursively with all compressed data anywhere in it: objects of git, packs, archives,
// values of the store.
func unfold(data []byte, depth int, see func([]byte)) {
	see(data)
	if depth == 0 {
		return
	}
	for i := 0; i+4 < len(data); i++ {
		var plain []byte
		switch {
		case data[i] == 0x78 && (int(data[i])<<8|int(data[i+1]))%31 == 0:
			plain = drain(zlib.NewReader(bytes.NewReader(data[i:])))
		case data[i] == 0x1f && data[i+1] == 0x8b && data[i+2] == 8:
			plain = drain(gzip.NewReader(bytes.NewReader(data[i:])))
		case bytes.HasPrefix(data[i:], []byte{0x28, 0xb5, 0x2f, 0xfd}):
			r, err := zstd.NewReader(bytes.NewReader(data[i:]), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnfold))
			plain = drain(r, err)
			if r != nil {
				r.Close()
			}
		}
		if len(plain) >= minUnfold {
			unfold(plain, depth-1, see)
		}
	}
}

// drain reads as much as possible, because a stream within other data ends with an error.
func drain[R io.Reader](r R, err error) []byte {
	if err != nil {
		return nil
	}
	plain, _ := io.ReadAll(io.LimitReader(r, maxUnfold))
	return plain
}

func TestNestedCompressionIsUnfolded(t *testing.T) {
	t.Parallel()
	var z, g bytes.Buffer
	zw := zlib.NewWriter(&z)
	_, _ = zw.Write([]byte("blob 6\x00needle in a stack"))
	_ = zw.Close()
	gw := gzip.NewWriter(&g)
	_, _ = gw.Write(append([]byte("a tar's header "), z.Bytes()...))
	_ = gw.Close()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	data := append([]byte("xx(/x\x78\x9c before "), enc.EncodeAll(g.Bytes(), nil)...)
	found := 0
	unfold(append(data, " after"...), maxDepth, func(b []byte) { found += bytes.Count(b, []byte("needle")) })
	if found == 0 { // more than once, if incompressible data is stored as it is
		t.Error("data compressed three times was not found")
	}
}
