package costs

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// Times are what the parts of sleeping and waking take.
type Times struct {
	// Boot is from the order of a VM to its first login, from an image in the same place. It is not paid
	// for, but people wait for it.
	Boot Time
	// Image is from powering a VM off to an image that is available; the VM is paid for meanwhile.
	Image Time
	// Pack and Unpack are an archive's.
	Pack, Unpack Time
	// Thaw is what a parked VM takes to go on.
	Thaw Time
}

// Time is a time that varies: half of all are below Half, 95 of 100 below Most, as a log-normal
// distribution has it. None is under a third of Half or over twice Most.
type Time struct{ Half, Most time.Duration }

// DefaultTimes are what others have measured of Hetzner Cloud, and what we have of archives; see docs/assumptions.md.
func DefaultTimes() Times {
	return Times{
		Boot:   Time{70 * time.Second, 4 * time.Minute},
		Image:  Time{150 * time.Second, 5 * time.Minute},
		Pack:   Time{2 * time.Second, 10 * time.Second},
		Unpack: Time{2 * time.Second, 10 * time.Second},
		Thaw:   Time{time.Second, 2 * time.Second},
	}
}

// draw is the time that something takes. It depends on what it is and for whom, and on nothing that
// happened before, so that every policy has the same luck.
func (t Time) draw(seed uint64, what, task string, run int) time.Duration {
	h := fnv.New64a()
	for _, part := range []string{what, task, strconv.Itoa(run)} {
		_, _ = h.Write([]byte(part + "\x00")) // a hash takes everything
	}
	const most = 1.6448536269514722 // how many standard deviations the 95th percentile is above the middle
	half := math.Log(t.Half.Seconds())
	s := math.Exp(half + rand.New(rand.NewPCG(seed, h.Sum64())).NormFloat64()*(math.Log(t.Most.Seconds())-half)/most)
	d := time.Duration(s * float64(time.Second)).Round(time.Millisecond)
	return min(max(d, t.Half/3), 2*t.Most)
}
