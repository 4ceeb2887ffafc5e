package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

// shop is a memory whose VMs cost money, come up after a while, and can be imaged and rebuilt. Results of orders can be
// planned.
type shop struct {
	*memory
	boot time.Duration

	mux     sync.Mutex
	orders  []string         // ordered TYPE/LOCATION, or rebuilt VM
	answers map[string]error // planned errors by TYPE/LOCATION
	lose    int              // number of orders whose response is lost after the effect
	images  map[string]fleet.Image
	off     map[string]bool
	calls   int // calls of List
	most    int // the account's limit on VMs, 0 for none
	cores   int // the account's limit on CPUs, 0 for none

	missing      int   // number of reads by ID that find no VM
	missingImage int   // number of reads by ID that find no image
	silent       error // error of all reads by ID

	opens  bool           // VMs from the default image have an open network until it is closed
	busy   int            // how often a network cannot be closed yet
	closed map[string]int // how often the network of a VM was closed, by ID
}

var (
	_ fleet.Market        = (*shop)(nil)
	_ fleet.Imager        = (*shop)(nil)
	_ fleet.Rebuilder     = (*shop)(nil)
	_ fleet.NetworkCloser = (*shop)(nil)
)

func newShop(c *clock) *shop {
	return &shop{memory: newMemory(c.now), boot: 30 * time.Second, answers: map[string]error{}, images: map[string]fleet.Image{}, off: map[string]bool{}, closed: map[string]int{}}
}

func (s *shop) Offers(context.Context) ([]fleet.Offer, error) {
	var out []fleet.Offer
	for i, kind := range []string{"small", "large"} {
		for j, place := range []string{"here", "there"} {
			out = append(out, fleet.Offer{
				Type: kind, Location: place, Arch: "amd64", VCPU: 4 << i, MemoryMB: 8192 << i, DiskGB: 80 << i,
				MicroHour: int64(10_000*(i+1) + j), Currency: "EUR", Available: true,
			})
		}
	}
	return out, nil
}

func (s *shop) OpensNetwork(image string) bool { return s.opens && image == "" }

func (s *shop) CloseNetwork(_ context.Context, id string) error {
	s.mux.Lock()
	defer s.mux.Unlock()
	if s.busy--; s.busy >= 0 {
		return fmt.Errorf("%w: the firewall is being changed", fleet.ErrBusy)
	}
	s.closed[id]++
	return nil
}

func (s *shop) SetupUser() string { return "root" }

func (s *shop) ImageMicroGBMonth(context.Context) (int64, error) { return 14_300, nil }

func (s *shop) Create(ctx context.Context, spec fleet.Spec) (fleet.VM, error) {
	if vm, err := s.Get(ctx, spec.Name); err == nil {
		return vm, nil
	}
	pair := spec.Offer.Type + "/" + spec.Offer.Location
	s.mux.Lock()
	s.orders = append(s.orders, pair)
	err := s.answers[pair]
	lost := s.lose > 0
	if lost {
		s.lose--
	}
	s.mux.Unlock()
	if err == nil {
		err = s.limited(spec.Offer)
	}
	if err != nil {
		return fleet.VM{}, err
	}
	s.put(spec.Name, spec, s.now())
	if lost {
		return fleet.VM{}, fmt.Errorf("create: %w", fleet.ErrUnknownOutcome)
	}
	return s.Get(ctx, spec.Name)
}

// limited returns the error for an order beyond the account's limits.
func (s *shop) limited(o fleet.Offer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cpus := map[string]int{"small": 4, "large": 8}
	used := cpus[o.Type]
	for _, vm := range s.vms {
		used += cpus[vm.Kind]
	}
	if s.most > 0 && len(s.vms) >= s.most || s.cores > 0 && used > s.cores {
		return fmt.Errorf("%w: limit exceeded", fleet.ErrQuota)
	}
	return nil
}

func (s *shop) put(id string, spec fleet.Spec, created time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	price := int64(10_000)
	if spec.Offer.Type == "large" {
		price = 20_000
	}
	s.vms[spec.Name] = fleet.VM{
		Name: spec.Name, Labels: spec.Labels, ID: id, Kind: spec.Offer.Type, Location: spec.Offer.Location, CreatedAt: created,
		MicroHour: price, Currency: "EUR", Facts: map[string]string{"up": s.now().Add(s.boot).Format(time.RFC3339Nano)},
	}
}

func (s *shop) Get(ctx context.Context, name string) (fleet.VM, error) {
	vm, err := s.memory.Get(ctx, name)
	return s.state(vm), err
}

// byID returns the name of the VM with an ID.
func (s *shop) byID(id string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, vm := range s.vms {
		if vm.ID == id {
			return key, true
		}
	}
	return "", false
}

func (s *shop) GetByID(ctx context.Context, id string) (fleet.VM, error) {
	s.mux.Lock()
	missing := s.missing > 0
	if missing {
		s.missing--
	}
	silent := s.silent
	s.mux.Unlock()
	if silent != nil {
		return fleet.VM{}, silent
	}
	name, ok := s.byID(id)
	if !ok || missing {
		return fleet.VM{}, fleet.ErrNotFound
	}
	return s.Get(ctx, name)
}

func (s *shop) DeleteByID(ctx context.Context, id string, why fleet.Reason) error {
	name, ok := s.byID(id)
	if !ok {
		return nil
	}
	return s.Delete(ctx, name, why)
}

func (s *shop) ImageByID(ctx context.Context, id string) (fleet.Image, error) {
	images, err := s.Images(ctx)
	for _, img := range images {
		if img.ID == id && !s.noImage() {
			return img, err
		}
	}
	return fleet.Image{}, fleet.ErrNotFound
}

// noImage reports whether this read of an image must not find it.
func (s *shop) noImage() bool {
	s.mux.Lock()
	defer s.mux.Unlock()
	s.missingImage--
	return s.missingImage >= 0
}

func (s *shop) List(ctx context.Context) ([]fleet.VM, error) {
	s.mux.Lock()
	s.calls++
	s.mux.Unlock()
	vms, err := s.memory.List(ctx)
	for i := range vms {
		vms[i] = s.state(vms[i])
	}
	return vms, err
}

func (s *shop) state(vm fleet.VM) fleet.VM {
	up, _ := time.Parse(time.RFC3339Nano, vm.Facts["up"])
	s.mux.Lock()
	defer s.mux.Unlock()
	switch {
	case vm.State == fleet.StateEnded:
	case s.off[vm.Name]:
		vm.State = fleet.StateOff
	case s.now().Before(up):
		vm.State = fleet.StateCreating
	default:
		vm.State = fleet.StateRunning
	}
	return vm
}

func (s *shop) PowerOff(_ context.Context, vm string) error {
	s.mux.Lock()
	defer s.mux.Unlock()
	s.off[vm] = true
	return nil
}

func (s *shop) PowerOn(_ context.Context, vm string) error {
	s.mux.Lock()
	defer s.mux.Unlock()
	delete(s.off, vm)
	return nil
}

func (s *shop) Image(_ context.Context, spec fleet.ImageSpec) (fleet.Image, error) {
	s.mux.Lock()
	defer s.mux.Unlock()
	id := "image-of-" + spec.VM
	if _, ok := s.images[id]; !ok {
		s.images[id] = fleet.Image{ID: id, Labels: spec.Labels, CreatedAt: s.now(), Location: "there", DiskGB: 160, StoredMB: 1200, Arch: "amd64"}
	}
	return s.images[id], nil
}

func (s *shop) Images(context.Context) ([]fleet.Image, error) {
	s.mux.Lock()
	defer s.mux.Unlock()
	var out []fleet.Image
	for id, img := range s.images {
		img.Ready = !img.Failed && s.now().Sub(img.CreatedAt) >= time.Minute
		s.images[id] = img
		out = append(out, img)
	}
	return out, nil
}

func (s *shop) DeleteImage(_ context.Context, id string) error {
	s.mux.Lock()
	defer s.mux.Unlock()
	delete(s.images, id)
	return nil
}

func (s *shop) Rebuild(ctx context.Context, from string, spec fleet.Spec) (fleet.VM, error) {
	old, err := s.memory.Get(ctx, from)
	if err != nil {
		return fleet.VM{}, err
	}
	if err := s.Delete(ctx, from, ""); err != nil {
		return fleet.VM{}, err
	}
	spec.Offer = fleet.Offer{Type: old.Kind, Location: old.Location}
	s.put(old.ID, spec, old.CreatedAt)
	s.mux.Lock()
	s.orders = append(s.orders, "rebuild "+old.ID)
	s.mux.Unlock()
	return s.Get(ctx, spec.Name)
}

// ordered returns all orders so far.
func (s *shop) ordered() string {
	s.mux.Lock()
	defer s.mux.Unlock()
	return strings.Join(slices.Clone(s.orders), " ")
}
