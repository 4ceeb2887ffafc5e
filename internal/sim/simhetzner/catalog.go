package simhetzner

import (
	"fmt"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

// location is one of Hetzner's locations.
type location struct {
	schema.Location
	short string
}

func locations() []*location {
	eu := func(id int64, name, city, country, zone string, lat, long float64) *location {
		return &location{short: name, Location: schema.Location{
			ID: id, Name: name, Description: city + " DC Park 1", Country: country, City: city, Latitude: lat, Longitude: long, NetworkZone: zone,
		}}
	}
	return []*location{
		eu(1, "fsn1", "Falkenstein", "DE", "eu-central", 50.47612, 12.370071),
		eu(2, "nbg1", "Nuremberg", "DE", "eu-central", 49.452102, 11.076665),
		eu(3, "hel1", "Helsinki", "FI", "eu-central", 60.169855, 24.938379),
		eu(4, "ash", "Ashburn, VA", "US", "us-east", 39.045821, -77.487073),
		eu(5, "hil", "Hillsboro, OR", "US", "us-west", 45.54222, -122.951924),
		eu(6, "sin", "Singapore", "SG", "ap-southeast", 1.283333, 103.833333),
	}
}

// serverType is a type of server with its prices by location.
type serverType struct {
	schema.ServerType
	prices map[string]hetznerbill.Price
}

// catalog lists everything that can be ordered. It does not change while the simulator runs.
type catalog struct {
	locations []*location
	types     []*serverType
}

func newCatalog() *catalog {
	c := &catalog{locations: locations()}
	for i, spec := range hetznerbill.ServerTypes() {
		c.types = append(c.types, newType(int64(101+i), spec))
	}
	return c
}

func newType(id int64, spec hetznerbill.ServerType) *serverType {
	cpu, category := "shared", "cost_optimized"
	switch spec.Name[:min(3, len(spec.Name))] {
	case "ccx":
		cpu, category = "dedicated", "general_purpose"
	case "cpx":
		category = "regular_performance"
	}
	return &serverType{prices: spec.Prices, ServerType: schema.ServerType{
		ID: id, Name: spec.Name, Description: fmt.Sprintf("%s, %d vCPU", spec.Name, spec.Cores), Category: category,
		Cores: spec.Cores, Memory: spec.MemoryGB, Disk: spec.DiskGB, StorageType: "local", CPUType: cpu, Architecture: spec.Arch,
	}}
}

func (c *catalog) serverType(want schema.IDOrName) *serverType {
	for _, t := range c.types {
		if t.ID == want.ID || (want.ID == 0 && t.Name == want.Name) {
			return t
		}
	}
	return nil
}

func (c *catalog) location(nameOrID string) *location {
	for _, l := range c.locations {
		if l.Name == nameOrID || fmt.Sprint(l.ID) == nameOrID {
			return l
		}
	}
	return nil
}

// stockImages creates the images that are available to everyone.
func (s *Sim) stockImages() {
	for _, i := range []struct{ name, flavor, version, arch string }{
		{"ubuntu-24.04", "ubuntu", "24.04", "x86"},
		{"ubuntu-24.04", "ubuntu", "24.04", "arm"},
		{"debian-13", "debian", "13", "x86"},
		{"debian-13", "debian", "13", "arm"},
	} {
		img := &image{
			id:          s.nextID(),
			kind:        "system",
			status:      imageAvailable,
			name:        i.name,
			description: i.flavor + " " + i.version,
			flavor:      i.flavor,
			version:     i.version,
			arch:        i.arch,
			diskGB:      5,
			labels:      map[string]string{},
			created:     s.cfg.Now().AddDate(-1, 0, 0),
		}
		s.images[img.id] = img
	}
}

// offer is a server type in a place.
type offer struct{ typ, location string }

// stock is the number of available servers of an offer.
type stock struct {
	left    int  // negative: unlimited
	claim   bool // availability in the list of types
	claimed bool // claim was set and need not be true
}

// stocks holds the stock of each offer that was asked for.
type stocks map[offer]*stock

// find returns the stock of a server type in a location.
func (all stocks) find(typ, where string) *stock {
	o := offer{typ, where}
	if all[o] == nil {
		all[o] = &stock{left: -1}
	}
	return all[o]
}

// takeServer takes a server of a type in a location, or fails if none is left.
func (all stocks) takeServer(t *serverType, l *location) error {
	st := all.find(t.Name, l.Name)
	if st.left == 0 {
		return newError("resource_unavailable", "error during placement")
	}
	if st.left > 0 {
		st.left--
	}
	return nil
}

// giveBack makes room for another server.
func (all stocks) giveBack(t *serverType, l *location) {
	if st := all.find(t.Name, l.Name); st.left >= 0 {
		st.left++
	}
}

// available returns the availability in the list of server types.
func (all stocks) available(typ, where string) bool {
	st := all.find(typ, where)
	if st.claimed {
		return st.claim
	}
	return st.left != 0
}

// SetStock sets how many more servers of a type can be ordered in a location; negative, the default, means unlimited.
// Deleting a server makes room for another.
func (s *Sim) SetStock(typ, location string, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stocks.find(typ, location).left = left
}

// SetStockAll sets the stock of every server type in every location.
func (s *Sim) SetStockAll(left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.catalog.types {
		for where := range t.prices {
			s.stocks.find(t.Name, where).left = left
		}
	}
}

// Claim sets the availability that the list of server types states for a type in a location, true or not. By default
// the list is right.
func (s *Sim) Claim(typ, location string, available bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stocks.find(typ, location)
	st.claim, st.claimed = available, true
}
