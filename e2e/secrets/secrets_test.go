//go:build linux

package secrets_test

import (
	"crypto/rand"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// places are all that is searched.
func places() []string {
	return []string{inFile, inEnvironment, inMemory, inStore, inTranscript, inArchive, inData, inLog, inPage, inComment, inCommit, inPrompt}
}

// TestNothingSecretIsAnywhere plays a task's life and looks for every secret of errand's wherever the agent could
// read or leave it. The canary, which the agent scatters, has to be found in each of the places, by the same search.
func TestNothingSecretIsAnywhere(t *testing.T) {
	t.Parallel()
	if raced {
		t.Skip("the search takes a minute with the race detector, and finds what it finds without; the stories race the same life")
	}
	if err := exec.Command("bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true").Run(); err != nil {
		t.Skipf("boxes with files of their own do not work here: bubblewrap: %v", err)
	}
	bird := "canary" + strings.ToLower(rand.Text())
	l := begin(t, bird)
	during := l.atGate()
	l.seen("the agent, during its run", during)
	after := l.inside()
	l.seen("its user, after the run", after)
	l.sleep()
	x := needles(t, l.world, l.dir, bird)
	l.kept(x.finder())
	l.finish()
	l.kept(append(x, needles(t, l.world, l.dir, bird)...).finder())
	t.Logf("searched %d MB on errand's side", l.bytes>>20)
	l.judge()
}

// seen takes what was seen on a VM, and says what was not.
func (l *life) seen(who string, s Sight) {
	l.t.Helper()
	l.t.Logf("%s searched %d files, %d processes, %d MB", who, s.Files, s.Processes, s.Bytes>>20)
	for _, c := range s.Closed {
		l.t.Logf("  cannot read %s", c)
	}
	if s.Files < 10 || s.Processes < 2 || s.Bytes < 1<<20 {
		l.t.Errorf("%s searched too little to say anything", who)
	}
	l.found = append(l.found, s.Found...)
}

// judge wants no secret anywhere, and the canary everywhere.
func (l *life) judge() {
	l.t.Helper()
	birds := map[string]int{}
	var told []Hit
	for _, h := range l.found {
		switch {
		case strings.HasPrefix(h.Name, canary):
			birds[h.Place]++
		case !slices.Contains(told, h):
			told = append(told, h)
			l.t.Errorf("%s is in a %s: %s", h.Name, h.Place, h.Where)
		}
	}
	for _, place := range places() {
		if birds[place] == 0 {
			l.t.Errorf("the canary was not found in a %s: that is not searched", place)
		}
	}
	l.t.Logf("the canary was found %v", birds)
}
