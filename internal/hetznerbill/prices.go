// Package hetznerbill has the prices of Hetzner Cloud and the rules by which it bills: started hours, a monthly maximum for
// servers and addresses, size and time for images and volumes.
//
// It uses only the standard library and knows nothing of errand, since both the cost simulation (package costs) and the
// simulator of the API (package simhetzner) use it. All amounts are net, in millionths of Currency. Start reading at Meter.
package hetznerbill

// Currency is the currency of all prices.
const Currency = "EUR"

// PricesOf is the month whose price list this is, as far as it is known.
const PricesOf = "June 2026"

// ImageMonth and VolumeMonth are the prices of a gigabyte for a month.
const (
	ImageMonth  = 14_300
	VolumeMonth = 57_200
)

// A Price is what a thing costs per started hour, and at most in a calendar month.
type Price struct{ Hour, Month int64 }

// IPv4 returns the price of a public IPv4 address. IPv6 is free.
func IPv4() Price { return Price{Hour: 800, Month: 500_000} }

// A ServerType is a kind of server with its prices by location.
type ServerType struct {
	Name     string
	Arch     string // x86 or arm
	Cores    int
	MemoryGB float32
	DiskGB   int
	Prices   map[string]Price
}

// ServerTypes returns the server types with their prices as of PricesOf. The monthly prices of ccx and cpx62 are estimates, at
// 624 hours.
func ServerTypes() []ServerType {
	eu := []string{"fsn1", "nbg1", "hel1"}
	with := func(t ServerType, hour, month int64, where ...string) ServerType {
		for _, l := range where {
			t.Prices[l] = Price{Hour: hour, Month: month}
		}
		return t
	}
	row := func(name, arch string, cores int, mem float32, disk int, hour, month int64, where ...string) ServerType {
		return with(ServerType{
			Name:     name,
			Arch:     arch,
			Cores:    cores,
			MemoryGB: mem,
			DiskGB:   disk,
			Prices:   map[string]Price{},
		}, hour, month, where...)
	}
	return []ServerType{
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
