package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/fleet"
)

// maker returns planned results of orders and checks in order; the last one of each repeats.
type maker struct {
	orders, checks []any // an error or an Image
	ordered        int
	checked        []time.Duration // times of the checks since the start
	deleted        []string
	now            func() time.Time
	began          time.Time
}

func next(list []any, n int) (fleet.Image, error) {
	switch a := list[min(n, len(list)-1)].(type) {
	case error:
		return fleet.Image{}, a
	case fleet.Image:
		return a, nil
	}
	panic("no answer")
}

func (m *maker) Image(context.Context, fleet.ImageSpec) (fleet.Image, error) {
	m.ordered++
	return next(m.orders, m.ordered-1)
}

func (m *maker) ImageByID(context.Context, string) (fleet.Image, error) {
	m.checked = append(m.checked, m.now().Sub(m.began))
	return next(m.checks, len(m.checked)-1)
}

func (m *maker) DeleteImage(_ context.Context, id string) error {
	m.deleted = append(m.deleted, id)
	return nil
}

// TestMakeImage: a single check against an image is ignored, two consecutive ones count, and a busy provider is
// retried.
func TestMakeImage(t *testing.T) {
	t.Parallel()
	making, ready, bad := fleet.Image{ID: "7"}, fleet.Image{ID: "7", Ready: true}, fleet.Image{ID: "7", Failed: true}
	passing := errors.New("bad gateway")
	orders := func(list ...any) []any { return list }
	for name, test := range map[string]struct {
		orders, checks []any
		ordered        int
		checked        []time.Duration // nil: not compared
		err            error
		says           string
		deleted        bool
	}{
		"ready at once":              {orders: orders(ready), ordered: 1},
		"ready at the first check":   {orders: orders(making), checks: orders(ready), ordered: 1, checked: []time.Duration{120e9}},
		"ready later":                {orders: orders(making), checks: orders(making, making, ready), ordered: 1, checked: []time.Duration{120e9, 160e9, 213_333_333_333}},
		"missed once":                {orders: orders(making), checks: orders(fleet.ErrNotFound, ready), ordered: 1, checked: []time.Duration{120e9, 130e9}},
		"said to be bad once":        {orders: orders(making), checks: orders(bad, making, bad, ready), ordered: 1},
		"missed, then bad":           {orders: orders(making), checks: orders(fleet.ErrNotFound, bad), ordered: 1, err: fleet.ErrInvalid, says: "cannot be used", deleted: true},
		"missed for good":            {orders: orders(making), checks: orders(fleet.ErrNotFound), ordered: 1, err: fleet.ErrInvalid, deleted: true},
		"adopted as a bad one":       {orders: orders(bad), checks: orders(bad), ordered: 1, err: fleet.ErrInvalid, deleted: true},
		"missed, unread, missed":     {orders: orders(making), checks: orders(fleet.ErrNotFound, passing, fleet.ErrNotFound), ordered: 1, err: fleet.ErrInvalid, deleted: true},
		"checks fail for a while":    {orders: orders(making), checks: orders(passing, passing, ready), ordered: 1},
		"checks fail for ever":       {orders: orders(making), checks: orders(passing), ordered: 1, err: fleet.ErrInvalid, says: "not available after 1h0m0s", deleted: true},
		"never ready":                {orders: orders(making), checks: orders(making), ordered: 1, err: fleet.ErrInvalid, says: "not available after 1h0m0s", deleted: true},
		"the VM is busy for a while": {orders: orders(fleet.ErrBusy, fleet.ErrBusy, making), checks: orders(ready), ordered: 3, checked: []time.Duration{150e9}},
		"the VM is busy for long":    {orders: orders(fleet.ErrBusy), ordered: 4, err: fleet.ErrBusy},
		"the answer is lost":         {orders: orders(fleet.ErrUnknownOutcome, making), ordered: 1, err: fleet.ErrUnknownOutcome},
		"the account is full":        {orders: orders(fleet.ErrQuota), ordered: 1, err: fleet.ErrQuota},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			m := &maker{orders: test.orders, checks: test.checks, now: c.now, began: c.now()}
			img, err := fleet.MakeImage(t.Context(), m, fleet.ImageSpec{VM: "1"}, fleet.ImageWait{
				Since: c.now(), Within: time.Hour, First: 2 * time.Minute, Pause: 10 * time.Second, Now: c.now, Wait: c.sleep, Log: zerolog.Nop(),
			})
			if !errors.Is(err, test.err) || test.err != nil && !strings.Contains(err.Error(), test.says) || test.err == nil && !img.Ready {
				t.Errorf("%+v, %v, want %v %q", img, err, test.err, test.says)
			}
			if m.ordered != test.ordered || test.checked != nil && !slices.Equal(m.checked, test.checked) {
				t.Errorf("ordered %d times and checked at %v, want %d and %v", m.ordered, m.checked, test.ordered, test.checked)
			}
			if (len(m.deleted) > 0) != test.deleted {
				t.Errorf("deleted %v, want it deleted: %v", m.deleted, test.deleted)
			}
		})
	}
}

// TestMakeImageEndsWithItsContext: if the context ends, MakeImage returns and keeps the image for the next call.
func TestMakeImageEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := newClock()
	ctx, cancel := context.WithCancel(t.Context())
	m := &maker{orders: []any{fleet.Image{ID: "7"}}, checks: []any{context.Canceled}, now: c.now, began: c.now()}
	wait := func(ctx context.Context, d time.Duration) error {
		if len(m.checked) == 0 {
			cancel()
			return nil
		}
		return ctx.Err()
	}
	_, err := fleet.MakeImage(ctx, m, fleet.ImageSpec{}, fleet.ImageWait{Since: c.now(), Within: time.Hour, Now: c.now, Wait: wait})
	if !errors.Is(err, context.Canceled) || len(m.deleted) > 0 || len(m.checked) != 1 {
		t.Errorf("got error %v, deleted %v, %d checks", err, m.deleted, len(m.checked))
	}
}
