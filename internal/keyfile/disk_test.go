package keyfile

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/disktest"
)

// TestKeysWithoutPower: a key that is in use is the same after a power cut, and half a key is never left.
func TestKeysWithoutPower(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			signer, err := SSH(filepath.Join(dir, "client_key"))
			if err != nil {
				t.Fatal(err)
			}
			disktest.Say(hex.EncodeToString(signer.PublicKey().Marshal()))
			secret, err := Secret(filepath.Join(dir, "tether_key"))
			if err != nil {
				t.Fatal(err)
			}
			disktest.Say(hex.EncodeToString(secret))
		},
		Check: func(t *testing.T, dir string, said []string) {
			for i, name := range []string{"client_key", "tether_key"} {
				_, err := os.Stat(filepath.Join(dir, name))
				if os.IsNotExist(err) && len(said) <= i {
					continue
				}
				var got string
				if i == 0 {
					signer, serr := SSH(filepath.Join(dir, name))
					if serr == nil {
						got = string(signer.PublicKey().Marshal())
					}
					err = serr
				} else {
					secret, serr := os.ReadFile(filepath.Join(dir, name))
					got, err = string(secret), serr
				}
				if err != nil || len(said) > i && hex.EncodeToString([]byte(got)) != said[i] || len(got) < 32 {
					t.Errorf("%s is another one: %v", name, err)
				}
			}
		},
	})
}

// TestKeysOnAFullDisk: a key that cannot be stored is no key, and nothing is in the way when there is room.
func TestKeysOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, kind := range []disktest.Kind{disktest.Write, disktest.Sync, disktest.Close, disktest.Rename} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					_, err := SSH(filepath.Join(dir, "client_key"))
					_, other := Secret(filepath.Join(dir, "tether_key"))
					disktest.Say("mended")
					if err == nil || other == nil {
						t.Errorf("got %v, %v", err, other)
					}
					if left, err := os.ReadDir(dir); err != nil || kind != disktest.Sync && len(left) > 0 {
						t.Errorf("left behind: %v, %v", left, err)
					}
					if _, err := SSH(filepath.Join(dir, "client_key")); err != nil {
						t.Error(err)
					}
				},
				Fail: func(c disktest.Call, said []string) syscall.Errno {
					if len(said) == 0 && c.Kind == kind {
						return syscall.ENOSPC
					}
					return 0
				},
			})
		})
	}
}
