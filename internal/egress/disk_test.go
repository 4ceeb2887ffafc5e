package egress

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/disktest"
)

// TestFullDisk: on a full disk logging a request returns an error, and requests that are logged later remain readable.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 256<<10, func(t *testing.T, dir string) {
		l, err := OpenLog(dir)
		if err != nil {
			t.Fatal(err)
		}
		add := func(n int) error {
			return l.Add("7-1", Request{Method: "CONNECT", Host: fmt.Sprintf("h%d.test", n), Port: "443", Reason: strings.Repeat("because ", 40)})
		}
		if err := add(0); err != nil {
			t.Fatal(err)
		}
		free := disktest.Fill(t, dir, 0)
		logged := 1
		for err = nil; err == nil; logged++ { // fills the rest of the file's last block
			err = add(logged)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got error %v, want no space", err)
		}
		free()
		if err := add(logged); err != nil {
			t.Error(err)
		}
		if list, all, err := l.Last("7-1", 100); err != nil || all != logged || list[len(list)-1].Host != fmt.Sprintf("h%d.test", logged) {
			t.Errorf("%d requests are there, not %d: %v", all, logged, err)
		}
	})
}
