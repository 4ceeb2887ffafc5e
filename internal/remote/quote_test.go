package remote_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/remote"
)

func TestQuoteIsReadable(t *testing.T) {
	t.Parallel()
	for want, argv := range map[string][]string{
		"git log --format=%H -n1": {"git", "log", "--format=%H", "-n1"},
		"echo 'a b' ''":           {"echo", "a b", ""},
		"'A=1' b=2":               {"A=1", "b=2"},
		`echo 'it'\''s'`:          {"echo", "it's"},
	} {
		if got := remote.Quote(argv...); got != want {
			t.Errorf("quoted as %s, want %s", got, want)
		}
	}
}

// FuzzQuote compares quoting with the shell that parses it.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "a", "it's", "$(id)", "\n", "a=b", "~", "-x", "{a,b}", "\\", "!", "#x", "ä", "\xff", "a;b", "'", "''"} {
		f.Add(seed, "x")
		f.Add("x", seed)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) {
			t.Skip()
		}
		out, err := exec.Command("/bin/sh", "-c", "printf '%s|' "+remote.Quote(a, b)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(out), a+"|"+b+"|"; got != want {
			t.Errorf("came back as %q, want %q", got, want)
		}
	})
}
