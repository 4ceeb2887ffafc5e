//go:build linux

package secrets_test

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
)

// places are all searched places.
func places() []string {
	return []string{inFile, inEnvironment, inMemory, inStore, inTranscript, inArchive, inData, inLog, inPage, inComment, inCommit, inPrompt}
}

// TestNothingSecretIsAnywhere plays a task's life, on local VMs and on those of a simulated cloud, and searches for
// each of errand's secrets wherever the agent could read or write it. On the cloud errand also uses its API token. The
// same search must find the canary, which the agent writes everywhere, in each of the places.
func TestNothingSecretIsAnywhere(t *testing.T) {
	t.Parallel()
	if heavytest.Raced {
		t.Skip("skipped: the search takes a minute with the race detector, which adds nothing; the stories run the same code with it")
	}
	if err := exec.Command("bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true").Run(); err != nil {
		t.Skipf("sandboxes with separate file systems do not work here: bubblewrap: %v", err)
	}
	for name, provider := range map[string]string{"local": "", "cloud": demo.ProviderHetzner} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nothingSecret(t, provider)
		})
	}
}

// nothingSecret plays the life and searches, with VMs of a provider.
func nothingSecret(t *testing.T, provider string) {
	bird := "canary" + strings.ToLower(rand.Text())
	l := begin(t, bird, provider)
	during := l.searchAtGate()
	l.seen("the agent, during its run", during)
	after := l.searchInside()
	l.seen("its user, after the run", after)
	l.sleep()
	before := l.needles()
	l.searchKept(before.index().finder())
	l.restartWithToken()
	l.finish()
	all := l.needles()
	for name, parts := range before {
		all[name] = append(all[name], parts...) // keys of ended VMs
	}
	must(t, os.WriteFile(filepath.Join(l.dir, "data", "planted"), all.planted(), 0o600))
	l.searchKept(all.index().finder())
	t.Logf("searched %d MB on errand's side", l.bytes>>20)
	l.judge(all)
}

// seen records the results of the search on a VM, and logs unreadable things.
func (l *life) seen(who string, s Sight) {
	l.t.Helper()
	l.t.Logf("%s searched %d files, %d processes, %d MB", who, s.Files, s.Processes, s.Bytes>>20)
	for _, c := range s.Closed {
		l.t.Logf("  cannot read %s", c)
	}
	if s.Files < 10 || s.Processes < 2 || s.Bytes < 1<<20 {
		l.t.Errorf("%s searched too little to prove anything", who)
	}
	l.found = append(l.found, s.Found...)
}

// judge checks that secrets are only where they were planted, and the canary is everywhere.
func (l *life) judge(all needles) {
	l.t.Helper()
	leaks, birds, found := sorted(l.found)
	for _, h := range leaks {
		l.t.Errorf("found %s in a %s: %s", h.Name, h.Place, h.Where)
	}
	for _, place := range places() {
		if birds[place] == 0 {
			l.t.Errorf("the canary was not found in a %s, so the search misses it", place)
		}
	}
	l.controls(all, found)
	l.t.Logf("places of the canary: %v", birds)
}

// sorted splits the findings into leaked secrets, each once, and the number of canaries in each place. It also returns
// all findings.
func sorted(hits []Hit) (leaks []Hit, birds map[string]int, found map[Hit]bool) {
	birds, found = map[string]int{}, map[Hit]bool{}
	for _, h := range hits {
		h.Name, _, _ = strings.Cut(h.Name, " (") // in which form
		planted := filepath.Base(h.Where) == "planted"
		switch {
		case h.Name == canary && !planted:
			birds[h.Place]++
		case !found[h] && !planted && !isPermitted(h):
			leaks = append(leaks, h)
		}
		found[h] = true
	}
	return leaks, birds, found
}

// isPermitted reports whether a finding in a place is permitted: the values for tests may be on the VM while the agent
// works, and the text printed next to them may be anywhere.
func isPermitted(h Hit) bool {
	return h.Name == besideIt || strings.HasPrefix(h.Place, "VM: ") && (h.Name == lentVariable || h.Name == lentFile)
}

// TestFindingsAreLeaksUnlessPermitted: all findings are leaks, except the values that may be on the VM.
func TestFindingsAreLeaksUnlessPermitted(t *testing.T) {
	t.Parallel()
	for _, place := range places() {
		for name, mayBeOnVM := range map[string]bool{
			subscribed + " 0 for calls": false, subscribed + " 2 for renewals": false, "model key": false, "App key, one of its numbers": false, lentVariable: true, lentFile: true,
		} {
			for _, form := range []string{"", " (base64)", " (hex)"} {
				hit := Hit{place, "somewhere", name + form}
				leaks, birds, _ := sorted([]Hit{hit, hit})
				want := 1
				if mayBeOnVM && strings.HasPrefix(place, "VM: ") {
					want = 0
				}
				if len(leaks) != want || len(birds) != 0 {
					t.Errorf("%+v: leaks %v, canaries %v", hit, leaks, birds)
				}
			}
		}
		if leaks, birds, _ := sorted([]Hit{{place, "somewhere", canary + " (hex)"}}); len(leaks) != 0 || birds[place] != 1 {
			t.Errorf("a canary in a %s: leaks %v, canaries %v", place, leaks, birds)
		}
	}
}

// controls checks that all planted secrets were found, and that the values for tests were used and printed.
func (l *life) controls(all needles, found map[Hit]bool) {
	l.t.Helper()
	for name := range all {
		if !found[Hit{inData, "planted", name}] {
			l.t.Errorf("%s was planted in errand's directory, but not found", name)
		}
	}
	for name := range l.planted {
		if !found[Hit{inFile, "/tmp/planted", name}] {
			l.t.Errorf("%s was planted on the VM, but not found", name)
		}
	}
	if n := len(l.world.Model.Logins()); n < 3 {
		l.t.Errorf("errand had only %d logins at the model's provider: none was renewed", n)
	}
	at := map[Hit]bool{}
	for h := range found {
		at[Hit{Place: h.Place, Name: h.Name}] = true
	}
	for _, want := range []Hit{
		{inEnvironment, "", lentVariable}, {inFile, "", lentFile}, {inTranscript, "", besideIt}, {inPage, "", besideIt}, {inLog, "", besideIt},
	} {
		if !at[want] {
			l.t.Errorf("%s was never in a %s, so finding nothing elsewhere proves nothing", want.Name, want.Place)
		}
	}
}
