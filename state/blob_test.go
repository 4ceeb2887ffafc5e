package state

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPack: every value is read as it was written, whichever mark it happens to begin with.
func TestPack(t *testing.T) {
	t.Parallel()
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, quickMost)
	for i, rnd := 0, rand.New(rand.NewPCG(1, 2)); i < len(noise); i++ {
		noise[i] = byte(rnd.Uint32())
	}
	text := []byte(strings.Repeat("The slug ends in a hyphen. ", quickMost/10))
	for name, body := range map[string][]byte{"nothing": nil, "text": text, "noise": noise} {
		for _, n := range []int{0, 1, quickHead, compressFrom - 1, compressFrom, quickMost, quickMost + 1, 2 * quickMost} {
			if n > len(body) {
				continue
			}
			for _, mark := range []byte{'{', 0, markZstd, markParts, markQuick, 0x04, 0xff} {
				data := bytes.Clone(body[:n])
				if n > 0 {
					data[0] = mark
				}
				for how, packed := range map[string][]byte{"pack": p.pack(data), "packQuick": p.packQuick(data)} {
					got, err := p.unpack(packed)
					if err != nil || !bytes.Equal(got, data) {
						t.Errorf("%s of %d bytes of %s that begin with %#x: got %d bytes, error %v", how, n, name, mark, len(got), err)
					}
					if partsOf(packed) != 0 {
						t.Errorf("%s of %d bytes of %s that begin with %#x would be taken for parts", how, n, name, mark)
					}
				}
			}
		}
	}
}

// TestPackQuickNoticesDamage changes each byte behind the mark, and cuts the value at each place.
func TestPackQuickNoticesDamage(t *testing.T) {
	t.Parallel()
	p, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(strings.Repeat(`{"action":"created","n":"`, 2) + strings.Repeat("0123456789abcdef", 100))
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		data = append(data, byte(rnd.Uint32()))
	}
	packed := p.packQuick(data)
	if packed[0] != markQuick || len(packed) > len(data)/2 {
		t.Fatalf("%d bytes were packed into %d with mark %#x", len(data), len(packed), packed[0])
	}
	for i := 1; i < len(packed); i++ {
		for _, flip := range []byte{1, 0x80, 0xff} {
			harmed := bytes.Clone(packed)
			harmed[i] ^= flip
			if got, err := p.unpack(harmed); err == nil {
				t.Fatalf("byte %d changed by %#x: read %d bytes without an error, equal: %v", i, flip, len(got), bytes.Equal(got, data))
			}
		}
		if _, err := p.unpack(packed[:i]); err == nil {
			t.Fatalf("cut after %d bytes: read without an error", i)
		}
	}
	huge := append(bytes.Clone(packed[:quickHead]), 0x80, 0x80, 0x80, 0x80, 0x01) // a block of 256 MB, as it says
	if _, err := p.unpack(huge); err == nil || !strings.Contains(err.Error(), "expand") {
		t.Errorf("a block that claims 256 MB: got error %v", err)
	}
}
