package work

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/disktest"
)

// TestLargeFilesWithoutPower: a stored large file survives a power cut, and every existing one is complete, whichever
// call fails before.
func TestLargeFilesWithoutPower(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("large ", 5000)
	want, _ := changeset.PointerTo([]byte(content))
	for _, kind := range []disktest.Kind{"", disktest.Write, disktest.Sync, disktest.Close, disktest.Rename} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			failed := false
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					_, err := keepLarge(dir+"/lfs", strings.NewReader(content), &want)
					if kind != "" {
						if !errors.Is(err, syscall.EIO) {
							t.Errorf("got error %v", err)
						}
						if left, _ := os.ReadDir(dir + "/lfs/tmp"); len(left) > 0 {
							t.Errorf("left behind: %v", left)
						}
						_, err = keepLarge(dir+"/lfs", strings.NewReader(content), &want)
					}
					if err != nil {
						t.Fatal(err)
					}
					disktest.Say("kept")
				},
				Fail: func(c disktest.Call, _ []string) syscall.Errno {
					if failed || c.Kind != kind {
						return 0
					}
					failed = true
					return syscall.EIO
				},
				Check: func(t *testing.T, dir string, said []string) {
					_, err := os.Stat(lfsFile(dir+"/lfs", want.OID))
					if _, whole := lfsObject(dir+"/lfs", want); !whole && (len(said) > 0 || err == nil) {
						t.Errorf("the large file is not whole: %v", err)
					}
				},
			})
		})
	}
}
