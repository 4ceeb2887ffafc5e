package hetzner

import (
	"math/big"
	"strings"
	"testing"
)

func TestMicro(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "0.0": 0, "1": 1_000_000, "0.0104720000000000": 10_472, "19.0281": 19_028_100, "0.00000000001": 1,
		"0.0000010": 1, "0.0000011": 2, "5.": 5_000_000, "007.5": 7_500_000, "9000000000000": 9_000_000_000_000_000_000,
	} {
		if got, err := parseMicro(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".5", "-1", "+1", "1e3", "1,5", "1.2.3", " 1", "ten", "99999999999999", "0x10", "١"} {
		if got, err := parseMicro(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

// FuzzMicro compares the conversion with big numbers: the result is never below the price, and at most a millionth
// above it.
func FuzzMicro(f *testing.F) {
	for _, s := range []string{"0.0104720000000000", "1", "9223372036854.775807", "0.0000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseMicro(text)
		if err != nil {
			return
		}
		exact, ok := new(big.Rat).SetString(strings.TrimSuffix(text, "."))
		if !ok {
			t.Fatalf("%q: got %d", text, got)
		}
		exact.Mul(exact, big.NewRat(1_000_000, 1))
		over := new(big.Rat).Sub(big.NewRat(got, 1), exact)
		if over.Sign() < 0 || over.Cmp(big.NewRat(1, 1)) >= 0 {
			t.Errorf("%q: got %d", text, got)
		}
	})
}
