package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// source returns a provider with candidates in all states.
func source() admin.Source {
	gone, soon := noon.Add(-time.Hour), noon.Add(100*time.Hour)
	row := func(where string, price float64) admin.Candidate {
		return admin.Candidate{Type: "cx43", Location: where, Sold: true, Available: true, VCPU: 8, MemoryMB: 16384, DiskGB: 160, Price: price, Currency: "EUR"}
	}
	dear, away, last := row("fsn1", 0.0264), row("hel1", 0.0101), row("sin", 0.0102)
	away.Available = false
	last.Available, last.GoneAfter = false, &gone
	ending := row("nbg1", 0.0253)
	ending.GoneAfter = &soon
	return admin.Source{
		Kind: "cx43", Isolation: "vm", Notes: []string{"from fsn1"},
		Candidates: []admin.Candidate{dear, ending, away, last, {Type: "cx<99>", Location: "fsn1"}},
	}
}

// vmWorld is a world with VMs in all phases.
func vmWorld(t *testing.T, alarms ...admin.Alarm) *world {
	t.Helper()
	var st *store.Store
	w := newWorld(t, func(c *admin.Config) {
		st = c.Store.(*store.Store)
		c.VMs, c.VMCaps, c.Alarms = st.VMs, vm.Caps{VMs: 3, MicroDay: 2_000_000, MicroMonth: 20_000_000}, func() []admin.Alarm { return alarms }
		c.Describe = func(context.Context) (admin.Source, error) { return source(), nil }
	})
	w.trigger(1, "Prices are rounded twice")
	ctx := context.Background()
	intend := func(name string, task state.TaskKey) {
		in := vm.Intent{Name: name, Task: task, Repo: 7, Owner: "7-1", Gen: 1, Provider: "hetzner", MicroHour: 26_400, Currency: "EUR", Paid: time.Hour}
		if task.IsZero() {
			in.Owner = "bake-web"
		}
		if _, err := st.VMs.Intend(ctx, in, vm.Caps{}); err != nil {
			t.Fatal(err)
		}
	}
	do := func(name string, list ...vm.Event) {
		for _, e := range list {
			if e.Kind == vm.Made {
				e.ID, e.Type, e.Location, e.CreatedAt, e.MicroHour, e.Currency, e.Paid = "4711", "cx43", "fsn1", w.now(), 26_400, "EUR", time.Hour
			}
			if _, changed, err := st.VMs.Apply(ctx, name, e); err != nil || !changed {
				t.Fatalf("%s of %s: changed %v, %v", e.Kind, name, changed, err)
			}
		}
	}
	task := state.TaskKey{Repo: 7, Issue: 1}
	intend("gone", task)
	do("gone", vm.Event{Kind: vm.Made})
	w.advance(40 * time.Second)
	do("gone", vm.Event{Kind: vm.Runs}, vm.Event{Kind: vm.Up})
	w.advance(90 * time.Minute)
	do("gone", vm.Event{Kind: vm.End, EndReason: "asleep"}, vm.Event{Kind: vm.Deleted})
	intend("parked", task)
	do("parked", vm.Event{Kind: vm.Made, Usable: true}, vm.Event{Kind: vm.Rest})
	intend("baking", state.TaskKey{})
	intend("stuck", state.TaskKey{Repo: 9, Issue: 9})
	do("stuck", vm.Event{Kind: vm.Made}, vm.Event{Kind: vm.Fail, EndReason: "unusable", Detail: "no <answer> in time"})
	w.advance(10 * time.Minute)
	return w
}

func TestVMs(t *testing.T) {
	t.Parallel()
	w := vmWorld(t, admin.Alarm{Kind: "volume", ID: "77", Name: "<mine>", Reason: "it does not carry `our` label", Since: noon})
	body := w.page("/vms")
	want(t, body,
		`<a href="/vms">VMs</a>`, "VMs now, of 3", "Today, of €2.00", "This month, of €20.00",
		`<code>parked</code>`, `<a href="/tasks/acme/shop/1">acme/shop#1</a>`, `<span class="badge people">parked</span>`, "paid until 14:30:40",
		"0.0264 EUR", "€0.03", `<code>baking</code></td><td data-label="For">bake-web`, "task 9/9", "it was unusable", "no &lt;answer&gt; in time",
		"Ended recently", "its task was suspended", "2 hours", "€0.05",
		"Needs attention", "volume <code>77</code>", "&lt;mine&gt;", "It does not carry <code>our</code> label.",
		"From the order to the first login", "40 s", "From fsn1", `href="/vms.json"`,
		"VM types that may be ordered", "8 vCPU, 16384 MB, 160 GB", "0.0253 EUR", ">available<", "until 2026-", "currently unavailable", "no longer sold", "cx&lt;99&gt;", ">not sold<",
	)
	wantNot(t, body, "<mine>", "<answer>", "ZgotmplZ")
	if body := w.page("/status"); true {
		want(t, body, `<a href="/vms">VMs</a>`, "From fsn1", `<a href="/vms#candidates">5 candidates; the cheapest is cx43 in nbg1 for 0.0253 EUR an hour.</a>`)
		wantNot(t, body, "16384")
	}
}

func TestVMsJSON(t *testing.T) {
	t.Parallel()
	w := vmWorld(t)
	_, body := w.get("/vms.json")
	type row struct {
		Name, Phase, For, Page, Kind, Location, Currency, Why string
		Price, Cost                                           float64
		Spans                                                 int64
		Until                                                 time.Time `json:"paid_until"`
	}
	var got struct {
		VMs, Ended   []row
		Today, Month struct {
			Cost, Cap float64
			VMs       int
			Hours     float64
		}
		Alarms []admin.Alarm
		Took   []struct {
			Times int
			P50   float64 `json:"p50_seconds"`
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.VMs) != 3 || len(got.Ended) != 1 || got.Alarms == nil || len(got.Took) != 1 || got.Took[0].P50 != 40 {
		t.Fatalf("got %s", body)
	}
	gone := got.Ended[0]
	if gone != (row{Name: "gone", Phase: "gone", For: "acme/shop#1", Page: "/tasks/acme/shop/1", Kind: "cx43", Location: "fsn1", Currency: "EUR", Why: "asleep", Price: 0.0264, Cost: 0.0528, Spans: 2}) {
		t.Errorf("got ended VM %+v", gone)
	}
	for _, v := range got.VMs {
		if made := noon.Add(40*time.Second + 90*time.Minute); v.Name == "parked" && !v.Until.Equal(made.Add(time.Hour)) {
			t.Errorf("parked until %s", v.Until)
		}
	}
	// two hours of the ended VM, and one each of the live ones and of the intended one
	if got.Today.Cost != 0.132 || got.Today.Cap != 2 || got.Month.Cost != 0.132 || got.Month.Hours != 5 || got.Month.VMs != 4 {
		t.Errorf("today %+v, month %+v", got.Today, got.Month)
	}
}

// TestImageCostIsShown: the cost of images is in the sums, and shown separately if there is any.
func TestImageCostIsShown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		microHour int64
		text      string // on the page
		json      string
		metric    string
	}{
		"no image":   {metric: "0"},
		"two images": {microHour: 30_000, text: `€0.53 <span class="dim">images €0.24</span>`, json: `"images": 0.24`, metric: "0.24"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := vmWorld(t)
			var images []vm.Image
			if test.microHour > 0 {
				for _, id := range []string{"1", "2"} {
					images = append(images, vm.Image{ID: id, CreatedAt: w.now(), MicroHour: test.microHour, Currency: "EUR", Paid: time.Hour})
				}
			}
			w.advance(200 * time.Minute)
			if err := w.store.VMs.BookImages(t.Context(), images, true); err != nil {
				t.Fatal(err)
			}
			body := w.page("/vms")
			_, asJSON := w.get("/vms.json")
			_, metrics := w.get("/metrics")
			if test.text == "" {
				wantNot(t, body, ">images ")
				wantNot(t, asJSON, `"images"`)
			}
			want(t, body, test.text)
			want(t, asJSON, test.json)
			wantLines(t, metrics, `errand_vm_spent_images{currency="EUR",period="day"} `+test.metric, `errand_vm_spent_images{currency="EUR",period="month"} `+test.metric)
		})
	}
}

func TestVMMetrics(t *testing.T) {
	t.Parallel()
	w := vmWorld(t, admin.Alarm{Kind: "volume"})
	_, body := w.get("/metrics")
	wantLines(t, body,
		`errand_vm_rows{phase="parked"} 1`, `errand_vm_rows{phase="gone"} 1`, `errand_vm_rows{phase="busy"} 0`, `errand_vm_ended{why="asleep"} 1`, `errand_vm_alarms 1`,
		`errand_vm_spent{currency="EUR",period="day"} 0.132`, `errand_vm_spent_cap{period="month"} 20`, `errand_vm_hours{period="month"} 5`,
		`errand_vm_took_seconds{quantile="0.95",what="from the order to the first login"} 40`,
	)
}

// TestNoVMs: without a reader of VMs there is no page; without VMs it is empty.
func TestNoVMs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if status, _ := w.get("/vms"); status != http.StatusNotFound {
		t.Errorf("got status %d", status)
	}
	wantNot(t, w.page("/status"), "/vms")
	w = newWorld(t, func(c *admin.Config) { c.VMs = c.Store.(*store.Store).VMs })
	want(t, w.page("/vms"), "No VMs", "–")
}
