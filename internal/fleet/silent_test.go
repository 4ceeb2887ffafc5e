package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

// TestVMsAreReachedWhileTheProviderIsSilent: VMs stay reachable while the provider does not respond, for any time, as
// long as nothing indicates that the VM is gone.
func TestVMsAreReachedWhileTheProviderIsSilent(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct{ answer, want error }{
		"does not answer":        {errors.New("502 Bad Gateway"), nil},
		"refuses the credential": {fleet.ErrUnauthorized, nil},
		"too many calls":         {fleet.ErrLimited, nil},
		"says that it is gone":   {fleet.ErrNotFound, fleet.ErrMissing},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f, s, c, _ := newShopFleet(t, nil)
			vm := get(t, f, fleet.AcquireSpec{Task: shopTask})
			for range 4 {
				c.pass(20 * time.Minute)
				s.mux.Lock()
				s.silent = test.answer
				s.mux.Unlock()
				got, err := f.Get(t.Context(), vm.Name)
				if !errors.Is(err, test.want) || err == nil && (got.ID != vm.ID || got.Endpoint.Address != vm.Endpoint.Address) {
					t.Fatalf("%+v, %v, want %v", got, err, test.want)
				}
				if test.want != nil {
					return
				}
			}
		})
	}
}
