package words_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{"0 s": -time.Second, "59 s": 59 * time.Second, "1 min": 119 * time.Second, "1 h 05 min": 65 * time.Minute, "3 days": 73 * time.Hour} {
		if got := words.Span(d); got != want {
			t.Errorf("Span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestOrdinal(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 10: "10th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		if got := words.Ordinal(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestExactSpan(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0.0 s": -time.Second, "9.5 s": 9500 * time.Millisecond, "59 s": 59 * time.Second, "1 min 05 s": 65 * time.Second,
		"59 min 59 s": time.Hour - time.Second, "1 h 05 min": 65 * time.Minute, "3 days": 73 * time.Hour,
	} {
		if got := words.ExactSpan(d); got != want {
			t.Errorf("ExactSpan(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestUSD(t *testing.T) {
	t.Parallel()
	for want, micro := range map[string]int64{"$0.00": 0, "under $0.01": 4999, "$0.01": 5000, "$10.00": 10_000_000} {
		if got := words.USD(micro); got != want {
			t.Errorf("USD(%d) = %q, want %q", micro, got, want)
		}
	}
}

// TestEveryPhaseHasWords: no phase is shown by its identifier, also if phases are added later.
func TestEveryPhaseHasWords(t *testing.T) {
	t.Parallel()
	seen := map[string]state.Phase{}
	for _, p := range state.Phases() {
		w := words.Phase(p)
		if strings.HasPrefix(w, "in phase") || seen[w] != "" {
			t.Errorf("phase %s is called %q, like %q", p, w, seen[w])
		}
		seen[w] = p
		if c := words.PhaseClause(p); !strings.HasPrefix(c, "the ") || seen[c] != "" {
			t.Errorf("phase %s is stated as %q, like %q", p, c, seen[c])
		} else {
			seen[c] = p
		}
	}
}

func TestCashIsFormatted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		micro          int64
		currency, want string
	}{{0, "EUR", "€0.00"}, {1, "EUR", "under €0.01"}, {22_300, "EUR", "€0.02"}, {3_000_000, "USD", "$3.00"}, {3_000_000, "CHF", "3.00 CHF"}} {
		if got := words.Cash(test.micro, test.currency); got != test.want {
			t.Errorf("Cash(%d, %s) = %q, want %q", test.micro, test.currency, got, test.want)
		}
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]int64{"0 bytes": 0, "999 bytes": 999, "1.0 kB": 1000, "3.2 MB": 3_212_345, "12.0 GB": 12e9} {
		if got := words.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}
