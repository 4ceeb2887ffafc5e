package blob

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// Every value is read as it was written, even if it begins with a byte that is used as a mark.
func TestCompressRoundTrip(t *testing.T) {
	t.Parallel()
	p, err := New(NewCloner())
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, maxFast)
	for i, rnd := 0, rand.New(rand.NewPCG(1, 2)); i < len(noise); i++ {
		noise[i] = byte(rnd.Uint32())
	}
	text := []byte(strings.Repeat("The slug ends in a hyphen. ", maxFast/10))
	for name, body := range map[string][]byte{"nothing": nil, "text": text, "noise": noise} {
		for _, n := range []int{0, 1, fastHeader, minCompressed - 1, minCompressed, maxFast, maxFast + 1, 2 * maxFast} {
			if n > len(body) {
				continue
			}
			for _, mark := range []byte{'{', 0, markZstd, markParts, markFast, 0x04, 0xff} {
				data := bytes.Clone(body[:n])
				if n > 0 {
					data[0] = mark
				}
				for how, packed := range map[string][]byte{"Compress": p.Compress(data), "CompressFast": p.CompressFast(data)} {
					got, err := p.Decompress(packed)
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("%s of %d bytes of %s that begin with %#x: got %d bytes, error %v", how, n, name, mark, len(got), err)
					}
					if PartCount(packed) != 0 {
						t.Errorf("%s of %d bytes of %s that begin with %#x: got a value that looks like a number of parts", how, n, name, mark)
					}
				}
			}
		}
	}
}

// TestDamageIsNoticed changes each byte after the mark, and truncates the value at each position.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	p, err := New(NewCloner())
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(strings.Repeat(`{"action":"created","n":"`, 2) + strings.Repeat("0123456789abcdef", 100))
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		data = append(data, byte(rnd.Uint32()))
	}
	packed := p.CompressFast(data)
	if packed[0] != markFast || len(packed) > len(data)/2 {
		t.Fatalf("got %d bytes compressed into %d with mark %#x", len(data), len(packed), packed[0])
	}
	for i := 1; i < len(packed); i++ {
		for _, flip := range []byte{1, 0x80, 0xff} {
			harmed := bytes.Clone(packed)
			harmed[i] ^= flip
			if got, err := p.Decompress(harmed); err == nil {
				t.Fatalf("byte %d changed by %#x: got %d bytes without an error (equal: %v), want an error", i, flip, len(got), bytes.Equal(got, data))
			}
		}
		if _, err := p.Decompress(packed[:i]); err == nil {
			t.Fatalf("truncated to %d bytes: got no error, want one", i)
		}
	}
	huge := append(bytes.Clone(packed[:fastHeader]), 0x80, 0x80, 0x80, 0x80, 0x01) // a block that claims to have 256 MB
	if _, err := p.Decompress(huge); err == nil || !strings.Contains(err.Error(), "expand") {
		t.Errorf("block that claims 256 MB: got error %v, want one about its size", err)
	}
}
