package costs

import (
	"fmt"
	"time"
)

// ledger is the other meter: the same facts as the account's, counted by a few lines of arithmetic.
type ledger struct {
	now              time.Time
	period           time.Duration
	hour             int64 // of a VM, in millionths
	gb               int64
	gbMonth          int64
	vms              map[string]time.Time
	images           map[string]time.Time
	bill             Bill
	created, deleted int
}

// hourOf is what an hour of a VM with its address costs, read off the price list of June 2026.
func hourOf(kind string) int64 {
	return map[string]int64{"cx33": 13_600 + 800, "cx43": 25_600 + 800}[kind]
}

func newLedger(s Setting) *ledger {
	return &ledger{period: s.Period, hour: hourOf(s.Type), gb: int64(s.ImageGB), gbMonth: 14_300, vms: map[string]time.Time{}, images: map[string]time.Time{}}
}

func (l *ledger) Sleep(until time.Time) { l.now = until }

func (l *ledger) Create(name, image string) error {
	if _, taken := l.vms[name]; taken {
		return fmt.Errorf("%s is taken", name)
	}
	if _, there := l.images[image]; image != "" && !there {
		return fmt.Errorf("no image %s", image)
	}
	l.vms[name] = l.now
	l.created++
	return nil
}

func (l *ledger) Delete(name string) error {
	at, there := l.vms[name]
	if !there {
		return fmt.Errorf("no VM %s", name)
	}
	delete(l.vms, name)
	l.deleted++
	hours := int64((l.now.Sub(at) + l.period - 1) / l.period)
	l.bill.Hours += max(hours, 1)
	l.bill.MicroVMs += max(hours, 1) * l.hour
	return nil
}

func (l *ledger) Image(name string) (string, error) {
	if _, there := l.vms[name]; !there {
		return "", fmt.Errorf("no VM %s", name)
	}
	l.images[name] = l.now
	return name, nil
}

func (l *ledger) DeleteImage(image string) error {
	at, there := l.images[image]
	if !there {
		return fmt.Errorf("no image %s", image)
	}
	delete(l.images, image)
	l.bill.MicroImages += int64(l.now.Sub(at).Hours() * float64(l.gb*l.gbMonth) / 730)
	return nil
}

func (l *ledger) Bill() (Bill, error) {
	if len(l.vms)+len(l.images) > 0 {
		return Bill{}, fmt.Errorf("%d VMs and %d images are left over", len(l.vms), len(l.images))
	}
	return l.bill, nil
}
