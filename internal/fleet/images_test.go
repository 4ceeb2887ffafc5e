package fleet_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state/vm"
)

// TestImagesUseUpTheCaps: images of suspended VMs and base images count by their stored size, and a VM is refused when
// they have used up the cap.
func TestImagesUseUpTheCaps(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mb      int64
		n       int
		failed  bool
		refused bool
	}{
		"none":             {},
		"small ones":       {mb: 8_000, n: 5},
		"large ones":       {mb: 400_000, n: 5, refused: true},
		"many":             {mb: 8_000, n: 200, refused: true},
		"no size is known": {n: 200},
		"failed ones":      {mb: 400_000, n: 5, failed: true},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f, s, c, store := newShopFleet(t, func(c *fleet.Config) { c.Caps, c.Tick = vm.Caps{VMs: 9, MicroDay: 300_000}, 5*time.Minute })
			get(t, f, fleet.AcquireSpec{Owner: "ours"})
			for i := range test.n {
				id := fmt.Sprint(i)
				kind := []string{fleet.ImageBase, fleet.ImageBaking}[i%2] // which no reaper deletes
				s.images[id] = fleet.Image{ID: id, Labels: map[string]string{fleet.LabelKind: kind}, StoredMB: test.mb, Failed: test.failed, CreatedAt: c.now()}
			}
			ctx, stop := c.until(t, c.now().Add(15*time.Hour))
			defer stop()
			if err := f.Run(ctx); err != nil {
				t.Fatal(err)
			}
			day, _, err := store.VMs.Spent(t.Context(), c.now())
			if err != nil {
				t.Fatal(err)
			}
			exact := float64(test.mb) / 1000 * float64(test.n) * 14_300 / 730 * 15
			if test.failed {
				exact = 0
			}
			if got := float64(day.Images); got < exact || got > exact*1.1+float64(test.n)*16 {
				t.Errorf("images cost %v, want about %v", got, exact)
			}
			var limit *vm.LimitError
			_, err = f.Acquire(t.Context(), fleet.AcquireSpec{Task: shopTask})
			if test.refused != errors.As(err, &limit) || test.refused && limit.Limit != vm.LimitVMsDay {
				t.Errorf("another VM: got error %v", err)
			}
		})
	}
}
