package subscription_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/internal/subscription"
)

// in moves a provider's login into a folder.
func (p *provider) in(t *testing.T, dir string) *subscription.Source {
	t.Helper()
	p.path = filepath.Join(dir, "login.json")
	p.login(t, "access-0", "refresh-0", start.Add(time.Minute))
	return p.source()
}

// TestPowerCut: after a power cut the file contains the renewed login that is in use, even if earlier disk calls
// failed. Without it the login could not be renewed.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]disktest.Kind{"": "", "write": disktest.Write, "sync": disktest.Sync, "close": disktest.Close, "rename": disktest.Rename} {
		for nth := 1; nth <= 2; nth++ {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				calls := 0
				disktest.Run(t, disktest.Disk{
					Play: func(t *testing.T, dir string) {
						p, _ := newProvider(t)
						s := p.in(t, dir)
						for _, path := range []string{p.path, dir} { // it existed before
							f, err := os.Open(path)
							if err != nil {
								t.Fatal(err)
							}
							if err := errors.Join(f.Sync(), f.Close()); err != nil {
								t.Fatal(err)
							}
						}
						disktest.Say("access-0")
						for tried := range 5 {
							text, err := s.Renew(t.Context(), "access-0")
							if err != nil {
								continue
							}
							disktest.Say(text)
							if tried == 0 && nth == 1 && name != "" {
								t.Error("a disk call failed, but no error was returned")
							}
							return
						}
						t.Error("it is never renewed")
					},
					Fail: func(c disktest.Call, said []string) syscall.Errno {
						if len(said) != 1 || c.Kind != fails || c.Path != "login.json.new" && c.Path != "." {
							return 0
						}
						if calls++; calls == nth {
							return syscall.EIO
						}
						return 0
					},
					Check: func(t *testing.T, dir string, said []string) {
						if len(said) == 0 {
							return
						}
						secrets, err := subscription.Secrets(filepath.Join(dir, "login.json"))
						if err != nil || len(said) == 2 && secrets[0] != said[1] {
							t.Errorf("%q is in use, and the file has %q: %v", said, secrets, err)
						}
					},
				})
			})
		}
	}
}

// TestFullDisk: on a full disk the refresh token is not used and the old login stays intact and in use. It is renewed
// when there is space.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 256<<10, func(t *testing.T, dir string) {
		p, _ := newProvider(t)
		s := p.in(t, dir)
		for _, left := range []int{0, 4 << 10, 32 << 10} {
			free := disktest.Fill(t, dir, left)
			token(t, s, "access-0")
			if p.count() != 0 {
				t.Errorf("with %d bytes of space the refresh token was used", left)
			}
			if _, err := os.Stat(p.path + ".new"); err == nil {
				t.Error("the reserved space was not released")
			}
			free()
		}
		token(t, s, "access-1")
	})
}
