package costs

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// Times are the durations of suspending and restoring.
type Times struct {
	// Boot is from the order of a VM to its first login, from an image in the same location. It costs nothing, but
	// people wait for it.
	Boot Time
	// Image is from the power-off of a VM to an available image; the VM is charged meanwhile.
	Image Time
	// Pack and Unpack are for archives.
	Pack, Unpack Time
	// Thaw is the time until a parked VM continues.
	Thaw Time
}

// Time is a log-normally distributed duration with the median Half and the 95th percentile Most. Values below a third
// of Half or above twice Most are cut.
type Time struct{ Half, Most time.Duration }

// DefaultTimes are durations that others measured on Hetzner Cloud, and errand's own for archives; see
// docs/assumptions.md.
func DefaultTimes() Times {
	return Times{
		Boot:   Time{70 * time.Second, 4 * time.Minute},
		Image:  Time{150 * time.Second, 5 * time.Minute},
		Pack:   Time{2 * time.Second, 10 * time.Second},
		Unpack: Time{2 * time.Second, 10 * time.Second},
		Thaw:   Time{time.Second, 2 * time.Second},
	}
}

// random returns a random duration that depends only on its arguments, so that all policies get the same values.
func (t Time) random(seed uint64, what, task string, run int) time.Duration {
	h := fnv.New64a()
	for _, part := range []string{what, task, strconv.Itoa(run)} {
		_, _ = h.Write([]byte(part + "\x00")) // hash writes never fail
	}
	const most = 1.6448536269514722 // standard deviations between the median and the 95th percentile
	half := math.Log(t.Half.Seconds())
	s := math.Exp(half + rand.New(rand.NewPCG(seed, h.Sum64())).NormFloat64()*(math.Log(t.Most.Seconds())-half)/most)
	d := time.Duration(s * float64(time.Second)).Round(time.Millisecond)
	return min(max(d, t.Half/3), 2*t.Most)
}
