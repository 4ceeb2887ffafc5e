package secrets_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	// window is the number of bytes compared with a rolling hash before a complete piece is compared.
	window = 12
	// piece is the length from which a part of a secret counts as the secret, because a part of a token is sensitive,
	// too.
	piece = 32
	base  = 0x9E3779B97F4A7C15 | 1
)

// Print is the fingerprint of one piece of a secret. It recognizes the piece without revealing it.
type Print struct {
	Name string // of the secret
	Head uint64 // rolling hash of the first bytes
	Len  int
	Sum  [sha256.Size]byte
}

// Index holds the fingerprints of all secrets.
type Index []Print

// add adds a secret in all forms in which it might be stored.
func (x *Index) add(name string, secret []byte) {
	if len(secret) < window+2 {
		panic(fmt.Sprintf("%s is too short for the search", name))
	}
	x.pieces(name, secret)
	x.pieces(name+" (hex)", []byte(hex.EncodeToString(secret)))
	for shift := range 3 {
		// The alignment of base64 depends on the preceding bytes; the characters at the ends contain bits of the
		// neighbors.
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), secret...))
		inner := text[(shift*8+5)/6 : len(text)-1]
		x.pieces(name+" (base64)", []byte(inner))
		if url := strings.NewReplacer("+", "-", "/", "_").Replace(inner); url != inner {
			x.pieces(name+" (base64url)", []byte(url))
		}
	}
}

// pieces cuts a secret, so that a part of it is found as well. The last piece overlaps to have the full length.
func (x *Index) pieces(name string, secret []byte) {
	for i := 0; i < len(secret); i += piece {
		cut := secret[max(0, min(i, len(secret)-piece)):]
		cut = cut[:min(piece, len(cut))]
		*x = append(*x, Print{name, head(cut[:window]), len(cut), sha256.Sum256(cut)})
	}
}

// head returns the hash of a window.
func head(b []byte) (h uint64) {
	for _, c := range b {
		h = h*base + uint64(c)
	}
	return h
}

// finder is an Index prepared for searches.
type finder struct {
	perhaps [1 << 16]bool // by the first bits of a hash, because most windows do not match
	heads   map[uint64][]Print
	last    uint64 // factor of the byte that leaves the window
}

func (x Index) finder() *finder {
	f := &finder{heads: make(map[uint64][]Print, len(x)), last: 1}
	for _, p := range x {
		f.perhaps[p.Head>>48] = true
		f.heads[p.Head] = append(f.heads[p.Head], p)
	}
	for range window {
		f.last *= base
	}
	return f
}

// search returns the names of the secrets in data, each once.
func (f *finder) search(data []byte) (names []string) {
	if len(data) < window {
		return nil
	}
	h := head(data[:window])
	for i := window; ; i++ {
		if f.perhaps[h>>48] {
			for _, p := range f.heads[h] {
				rest := data[i-window:]
				if p.Len <= len(rest) && sha256.Sum256(rest[:p.Len]) == p.Sum && !slices.Contains(names, p.Name) {
					names = append(names, p.Name)
				}
			}
		}
		if i == len(data) {
			return names
		}
		h = h*base + uint64(data[i]) - f.last*uint64(data[i-window])
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	secret := []byte("7hR-2q_Lw/9+Zx0-token-of-ours\xff\xfe\xfd-and-more-of-it-0123456789")
	var x Index
	x.add("ours", secret)
	text := base64.StdEncoding.EncodeToString
	for name, test := range map[string]struct {
		data  []byte
		found bool
	}{
		"itself":           {secret, true},
		"in the middle":    {bytes.Join([][]byte{bytes.Repeat([]byte("x"), 5000), secret, []byte("y")}, nil), true},
		"half of it":       {secret[:piece], true},
		"base64":           {[]byte(text(secret)), true},
		"base64, moved":    {[]byte(text(append([]byte("a:"), secret...))), true},
		"base64, and on":   {[]byte(text(append([]byte("user:"), append(secret, "tail"...)...))), true},
		"base64 for URLs":  {[]byte(base64.URLEncoding.EncodeToString(append([]byte("x"), secret...))), true},
		"hex":              {[]byte("aa" + hex.EncodeToString(secret)), true},
		"a few of it":      {secret[:window+2], false},
		"nearly":           {bytes.Replace(secret, []byte("ken"), []byte("kan"), 1)[:piece+4], false},
		"nothing":          {nil, false},
		"something longer": {bytes.Repeat([]byte("harmless "), 10_000), false},
	} {
		if got := len(x.finder().search(test.data)) > 0; got != test.found {
			t.Errorf("%s: found %t, want %t", name, got, test.found)
		}
	}
}
