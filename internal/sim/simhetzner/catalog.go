package simhetzner

import (
	"fmt"
	"slices"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
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

// price is a net price in millionths of the account's currency.
type price struct{ hour, month int64 }

// serverType is a server type with its prices by location.
type serverType struct {
	schema.ServerType
	prices map[string]price
}

// TypeSpec adds or replaces a server type.
type TypeSpec struct {
	Name     string
	Arch     string // x86 or arm
	Cores    int
	MemoryGB float32
	DiskGB   int
	// MicroHour and MicroMonth are net prices in millionths, by location.
	MicroHour, MicroMonth map[string]int64
}

// stockTypes returns types and prices of June 2026 as far as they are known; the monthly prices of ccx and cpx62 are
// estimates, at 624 hours.
func stockTypes() []TypeSpec {
	eu := []string{"fsn1", "nbg1", "hel1"}
	row := func(name, arch string, cores int, mem float32, disk int, hour, month int64, where ...string) TypeSpec {
		t := TypeSpec{Name: name, Arch: arch, Cores: cores, MemoryGB: mem, DiskGB: disk, MicroHour: map[string]int64{}, MicroMonth: map[string]int64{}}
		for _, l := range where {
			t.MicroHour[l], t.MicroMonth[l] = hour, month
		}
		return t
	}
	with := func(t TypeSpec, hour, month int64, where ...string) TypeSpec {
		for _, l := range where {
			t.MicroHour[l], t.MicroMonth[l] = hour, month
		}
		return t
	}
	return []TypeSpec{
		row("cx23", "x86", 2, 4, 40, 8800, 5_490_000, eu...),
		row("cx33", "x86", 4, 8, 80, 13600, 8_490_000, eu...),
		row("cx43", "x86", 8, 16, 160, 25600, 15_990_000, eu...),
		row("cax11", "arm", 2, 4, 40, 9600, 5_990_000, eu...),
		row("cax21", "arm", 4, 8, 80, 16800, 10_490_000, eu...),
		row("cax31", "arm", 8, 16, 160, 33600, 20_990_000, eu...),
		row("cpx22", "x86", 2, 4, 80, 31200, 19_490_000, eu...),
		row("cpx32", "x86", 4, 8, 160, 56900, 35_490_000, eu...),
		with(row("cpx42", "x86", 8, 16, 320, 111400, 69_490_000, eu...), 149800, 93_490_000, "sin"),
		row("cpx62", "x86", 16, 32, 640, 250000, 156_000_000, eu...),
		row("cpx41", "x86", 8, 16, 240, 193100, 120_490_000, "ash", "hil"),
		row("ccx13", "x86", 2, 8, 80, 68900, 42_990_000, append(eu, "ash", "hil", "sin")...),
		row("ccx23", "x86", 4, 16, 160, 137800, 85_990_000, append(eu, "ash", "hil", "sin")...),
		row("ccx33", "x86", 8, 32, 240, 221900, 138_490_000, append(eu, "ash", "hil", "sin")...),
	}
}

// catalog lists everything that can be ordered. It does not change while the simulator runs.
type catalog struct {
	locations []*location
	types     []*serverType
}

func newCatalog(more []TypeSpec) *catalog {
	c := &catalog{locations: locations()}
	specs := stockTypes()
	for _, m := range more {
		if i := slices.IndexFunc(specs, func(t TypeSpec) bool { return t.Name == m.Name }); i >= 0 {
			specs[i] = m
			continue
		}
		specs = append(specs, m)
	}
	for i, spec := range specs {
		c.types = append(c.types, newType(int64(101+i), spec))
	}
	return c
}

func newType(id int64, spec TypeSpec) *serverType {
	cpu, category := "shared", "cost_optimized"
	switch spec.Name[:min(3, len(spec.Name))] {
	case "ccx":
		cpu, category = "dedicated", "general_purpose"
	case "cpx":
		category = "regular_performance"
	}
	t := &serverType{prices: map[string]price{}, ServerType: schema.ServerType{
		ID: id, Name: spec.Name, Description: fmt.Sprintf("%s, %d vCPU", spec.Name, spec.Cores), Category: category,
		Cores: spec.Cores, Memory: spec.MemoryGB, Disk: spec.DiskGB, StorageType: "local", CPUType: cpu, Architecture: spec.Arch,
	}}
	for where, hour := range spec.MicroHour {
		t.prices[where] = price{hour: hour, month: spec.MicroMonth[where]}
	}
	return t
}

func (c *catalog) typ(want schema.IDOrName) *serverType {
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
			id: s.nextID(), kind: "system", status: imageAvailable, name: i.name, description: i.flavor + " " + i.version,
			flavor: i.flavor, version: i.version, arch: i.arch, diskGB: 5, labels: map[string]string{}, created: s.cfg.Now().AddDate(-1, 0, 0),
		}
		s.images[img.id] = img
	}
}
