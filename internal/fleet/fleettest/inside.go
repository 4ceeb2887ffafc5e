package fleettest

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

func testKeys(t *testing.T, w World) {
	p := w.Provider(t)
	vm, other := create(t, w, p, "keys"), create(t, w, p, "other")
	if got := sh(t, dial(t, w, vm), "id -un 2>/dev/null || echo $USER"); got == "" {
		t.Error("no user")
	}
	ours, others := endpoint(t, w, vm), endpoint(t, w, other)
	wrongPin := ours
	wrongPin.HostKeys = others.HostKeys
	_, err := dialAs(t, w, wrongPin, w.Signer)
	wantErr(t, "another VM's host key", err, remote.ErrHostKey)
	noPin := ours
	noPin.HostKeys = nil
	_, err = dialAs(t, w, noPin, w.Signer)
	wantErr(t, "no pinned host key", err, remote.ErrHostKey)
	_, err = dialAs(t, w, ours, newSigner(t))
	wantErr(t, "another client key", err, remote.ErrAuth)
	both := ours // during a rotation
	both.HostKeys = append(append([]string(nil), others.HostKeys...), ours.HostKeys...)
	if _, err := dialAs(t, w, both, w.Signer); err != nil {
		t.Fatalf("two pinned keys: %v", err)
	}
}

func testApart(t *testing.T, w World) {
	p := w.Provider(t)
	a, b := create(t, w, p, "apart-a"), create(t, w, p, "apart-b")
	inA, inB := dial(t, w, a), dial(t, w, b)
	name := "mark-" + rand.Text()
	sh(t, inA, "echo mine > $HOME/"+name+"; echo mine > ${TMPDIR:-/tmp}/"+name)
	if got := sh(t, inB, "ls $HOME ${TMPDIR:-/tmp}"); strings.Contains(got, name) {
		t.Errorf("b sees a's files: got %s", got)
	}
	if a.Isolation != fleet.IsolationFull && a.Isolation != fleet.IsolationVM {
		return
	}
	if got := sh(t, inB, "find / -xdev -name "+name+" 2>/dev/null | head -1"); got != "" {
		t.Errorf("b finds a's file at %s", got)
	}
}

func testProcessesDie(t *testing.T, w World) {
	if w.Processes == nil {
		t.Skip("SKIP: cannot see into a VM after its end")
	}
	p := w.Provider(t)
	c := dial(t, w, create(t, w, p, "dying"))
	mark := "errand-mark-" + rand.Text()
	// One in a separate session, one orphaned twice, one that ignores signals.
	sh(t, c, fmt.Sprintf(`for how in '' 'setsid nohup' 'setsid setsid'; do
		$how sh -c 'trap "" HUP INT TERM; while :; do sleep 1; done' %s </dev/null >/dev/null 2>&1 & done
		(setsid sh -c 'sh -c "while :; do sleep 1; done" %s & ' </dev/null >/dev/null 2>&1 &)`, mark, mark))
	eventually(t, "start processes", func() bool { return w.Processes(t, mark) >= 4 })
	if err := remove(deadline(t), p, "dying", fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	if n := w.Processes(t, mark); n != 0 {
		t.Errorf("%d processes outlive their VM", n)
	}
}

func testOutlive(t *testing.T, w World) {
	before := dial(t, w, create(t, w, w.Provider(t), "outlive"))
	sh(t, before, "sleep 600 </dev/null >/dev/null 2>&1 & echo $! > pid")
	_ = before.Close()
	p := w.Provider(t)
	vm, err := p.Create(deadline(t), spec(t, w, "outlive"))
	if err != nil {
		t.Fatalf("adopt: %v", err)
	}
	after := dial(t, w, vm)
	if got := sh(t, after, "kill -0 $(cat pid) && echo alive"); got != "alive" {
		t.Errorf("the process is %q", got)
	}
	if got := names(t, p); got != "outlive" {
		t.Errorf("listed: got %q", got)
	}
}

func testConcurrent(t *testing.T, w World) {
	vm := create(t, w, w.Provider(t), "busy")
	c := dial(t, w, vm)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := strings.Repeat(fmt.Sprint(i), 1000)
			res, err := c.Run(deadline(t), remote.Cmd{Argv: []string{"cat"}, Stdin: strings.NewReader(want)})
			if err != nil || string(res.Stdout) != want {
				t.Errorf("got command %d: %v, %d bytes", i, err, len(res.Stdout))
			}
		})
	}
	wg.Wait()
}
