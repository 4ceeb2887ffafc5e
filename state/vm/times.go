package vm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state/kv"
)

// Times has the durations of recent starts and images, oldest first, at most 64 of each.
type Times struct {
	Boot    []time.Duration `json:"boot,omitempty"`    // from the intent to the first login, from a base image
	Restore []time.Duration `json:"restore,omitempty"` // likewise, from an image of a suspended VM's disk
	Image   []time.Duration `json:"image,omitempty"`   // from the start of suspending until the image is available
}

const maxTimes = 64

// Percentile returns the smallest of the times that at least p percent of them do not exceed, 0 for none.
func Percentile(times []time.Duration, p int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min((len(sorted)*p+99)/100, len(sorted))-1]
}

// Times returns the times of recent VMs.
func (s *Rows) Times(ctx context.Context) (times Times, err error) {
	err = s.db.View(ctx, func(r kv.Reader) error {
		return ignoreMissing(s.codec.GetJSON(r, keyVMTimes, &times))
	})
	if err != nil {
		return Times{}, fmt.Errorf("read VM times: %w", err)
	}
	return times, nil
}

// recordTime stores the duration of the step that a row has just completed.
func (s *Rows) recordTime(tx kv.Tx, old, row *Row) error {
	booted := old.Phase == Booting && old.UpAt.IsZero() && !row.UpAt.IsZero()
	imaged := old.Phase == Sleeping && row.Phase == Asleep
	if !booted && !imaged {
		return nil
	}
	var times Times
	if err := ignoreMissing(s.codec.GetJSON(tx, keyVMTimes, &times)); err != nil {
		return err
	}
	switch {
	case imaged:
		times.Image = lastTimes(times.Image, row.Since.Sub(old.Since))
	case row.FromImage:
		times.Restore = lastTimes(times.Restore, row.UpAt.Sub(row.Intended))
	default:
		times.Boot = lastTimes(times.Boot, row.UpAt.Sub(row.Intended))
	}
	return s.codec.PutJSON(tx, keyVMTimes, times)
}

func lastTimes(times []time.Duration, d time.Duration) []time.Duration {
	times = append(times, d)
	return times[max(len(times)-maxTimes, 0):]
}
