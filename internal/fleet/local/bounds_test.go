package local_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/remote"
)

// TestForkBombIsBounded starts more processes than a box allows, each harmless on its own. The box still answers
// commands that need only a shell.
func TestForkBombIsBounded(t *testing.T) {
	t.Parallel()
	const most = 100
	for _, kind := range []string{local.KindBwrap, local.KindUserns} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, func(c *local.Config) { c.Bounds.Processes = most })
			c := dial(t, create(t, p, "one"), signer)
			for range 4 { // a shell exits if it cannot fork
				tolerate(t, c, "i=0; while [ $i -lt 60 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done")
			}
			count, err := strconv.Atoi(run(t, c, "set -- /proc/[0-9]*; echo $#"))
			if err != nil || count < most/2 || count > most {
				t.Errorf("got %d processes, error %v", count, err)
			}
			if got := run(t, c, "echo up"); got != "up" {
				t.Errorf("got output %q from the sandbox", got)
			}
		})
	}
}

// TestMemoryHogIsEnded allocates memory, in one process and in several that together exceed the limit. The processes
// that feed them end, too.
func TestMemoryHogIsEnded(t *testing.T) {
	t.Parallel()
	hog := func(bytes string) string {
		return "(head -c " + bytes + " /dev/zero; while printf x; do sleep 0.05; done) 2>/dev/null | tail >/dev/null"
	}
	for _, kind := range kinds {
		for name, line := range map[string]string{
			"one":     hog("500000000") + "; echo $?",
			"several": "for i in 1 2 3 4 5; do { " + hog("100000000") + "; echo $? >>~/ended; } >/dev/null 2>&1 & done; until [ -s ~/ended ]; do sleep 0.05; done; head -1 ~/ended",
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				p, signer := newProvider(t, kind, func(c *local.Config) { c.Bounds.Memory = 200 << 20 })
				c := dial(t, create(t, p, "one"), signer)
				if got := run(t, c, line); !strings.HasSuffix(got, "137") {
					t.Errorf("got output %q from the process that exceeds its limit", got)
				}
				if got := run(t, c, "head -c 20000000 /dev/zero | tail >/dev/null; echo $?"); !strings.HasSuffix(got, "0") {
					t.Errorf("afterwards: got output %q", got)
				}
			})
		}
	}
}

// TestSandboxCommandsAreKilledFirstOnOOM: if the host's memory runs out, the kernel kills sandboxed commands first.
func TestSandboxCommandsAreKilledFirstOnOOM(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, nil)
			c := dial(t, create(t, p, "one"), signer)
			if got := run(t, c, "until [ $(cat /proc/self/oom_score_adj) -ge 300 ]; do sleep 0.01; done; sh -c 'cat /proc/self/oom_score_adj'"); got != "300" {
				t.Errorf("got score %q", got)
			}
		})
	}
}

// tolerate runs a command and ignores its result.
func tolerate(t *testing.T, c *remote.Client, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Run(ctx, remote.Cmd{Argv: []string{"sh", "-c", line}}); err != nil {
		t.Fatal(err)
	}
}
