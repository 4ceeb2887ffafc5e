package costs

import (
	"fmt"
	"strconv"
	"time"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

// account is an account of Hetzner Cloud that is billed as the real one is. Everything happens at once: the world has
// durations of its own.
type account struct {
	setting Setting
	price   hetznerbill.Price // of a server
	now     time.Time
	servers map[string][]*hetznerbill.Meter // a server and its address, by name
	images  map[string]*hetznerbill.Meter
	made    int // images
	bill    Bill
}

var _ cloud = (*account)(nil)

func newAccount(s Setting, begin time.Time) (*account, error) {
	if s.ImageGB <= 0 || s.Period <= 0 {
		return nil, fmt.Errorf("an image of %d GB and a period of %s: both have to be above zero", s.ImageGB, s.Period)
	}
	for _, t := range hetznerbill.ServerTypes() {
		if price, ok := t.Prices[s.Location]; ok && t.Name == s.Type {
			return &account{
				setting: s, price: price, now: begin, bill: Bill{Currency: hetznerbill.Currency},
				servers: map[string][]*hetznerbill.Meter{}, images: map[string]*hetznerbill.Meter{},
			}, nil
		}
	}
	return nil, fmt.Errorf("%s cannot be ordered in %s", s.Type, s.Location)
}

// Sleep moves the clock forward.
func (a *account) Sleep(until time.Time) {
	if until.After(a.now) {
		a.now = until
	}
}

// Create orders a server, from an image or from the default one.
func (a *account) Create(name, image string) error {
	if _, taken := a.servers[name]; taken {
		return fmt.Errorf("the name %s is taken", name)
	}
	if _, there := a.images[image]; image != "" && !there {
		return fmt.Errorf("there is no image %s", image)
	}
	a.servers[name] = []*hetznerbill.Meter{{Price: a.price, From: a.now}, {Price: hetznerbill.IPv4(), From: a.now}}
	return nil
}

// Delete deletes a server.
func (a *account) Delete(name string) error {
	meters, there := a.servers[name]
	if !there {
		return fmt.Errorf("there is no server %s", name)
	}
	delete(a.servers, name)
	for i, m := range meters {
		hours, micro := a.stop(m)
		a.bill.MicroVMs += micro
		if i == 0 {
			a.bill.Hours += hours
		}
	}
	return nil
}

// Image creates an image of a server.
func (a *account) Image(name string) (string, error) {
	if _, there := a.servers[name]; !there {
		return "", fmt.Errorf("there is no server %s", name)
	}
	a.made++
	id := strconv.Itoa(a.made)
	a.images[id] = &hetznerbill.Meter{Price: hetznerbill.Price{Month: hetznerbill.ImageMonth}, GB: float32(a.setting.ImageGB), From: a.now}
	return id, nil
}

// DeleteImage deletes an image.
func (a *account) DeleteImage(image string) error {
	m, there := a.images[image]
	if !there {
		return fmt.Errorf("there is no image %s", image)
	}
	delete(a.images, image)
	_, micro := a.stop(m)
	a.bill.MicroImages += micro
	return nil
}

// stop ends a meter and reads it.
func (a *account) stop(m *hetznerbill.Meter) (periods, micro int64) {
	m.Stop(a.now)
	return m.Net(a.now, a.setting.Period)
}

// Bill returns the bill. Everything that was ordered must have been deleted.
func (a *account) Bill() (Bill, error) {
	if len(a.servers)+len(a.images) > 0 {
		return Bill{}, fmt.Errorf("%d servers and %d images are left over", len(a.servers), len(a.images))
	}
	return a.bill, nil
}
