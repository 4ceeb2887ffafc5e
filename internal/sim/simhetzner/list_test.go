package simhetzner_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 60
	for i := range n {
		w.clock.Advance(time.Second)
		opts := w.opts(fmt.Sprintf("vm-%02d", i), func(o *hcloud.ServerCreateOpts) {
			o.Labels = map[string]string{"n": fmt.Sprint(i % 3)}
		})
		if _, _, err := w.client.Server.Create(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
	}
	names := func(o hcloud.ServerListOpts) (out []string, meta hcloud.Meta) {
		found, res, err := w.client.Server.List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, sv := range found {
			out = append(out, sv.Name)
		}
		return out, res.Meta
	}
	first, meta := names(hcloud.ServerListOpts{})
	want := &hcloud.Pagination{Page: 1, PerPage: 25, NextPage: 2, LastPage: 3, TotalEntries: n}
	if diff := cmp.Diff(want, meta.Pagination); diff != "" || len(first) != 25 || first[0] != "vm-00" {
		t.Errorf("first page: got %v: %s", first, diff)
	}
	last, meta := names(hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{Page: 2, PerPage: 99}})
	want = &hcloud.Pagination{Page: 2, PerPage: 50, PreviousPage: 1, LastPage: 2, TotalEntries: n}
	if diff := cmp.Diff(want, meta.Pagination); diff != "" || len(last) != 10 {
		t.Errorf("last page: got %v: %s", last, diff)
	}
	sorted, _ := names(hcloud.ServerListOpts{Sort: []string{"created:desc"}, ListOpts: hcloud.ListOpts{PerPage: 2, LabelSelector: "n=1"}})
	if diff := cmp.Diff([]string{"vm-58", "vm-55"}, sorted); diff != "" {
		t.Error("newest of several:", diff)
	}
	named, _ := names(hcloud.ServerListOpts{Name: "vm-07"})
	if diff := cmp.Diff([]string{"vm-07"}, named); diff != "" {
		t.Error(diff)
	}
	all, err := w.client.Server.AllWithOpts(t.Context(), hcloud.ServerListOpts{Status: []hcloud.ServerStatus{hcloud.ServerStatusInitializing}})
	if err != nil || len(all) == 0 || len(all) == n {
		t.Errorf("got %d of %d in creation: %v", len(all), n, err)
	}
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, labels := range map[string]map[string]string{
		"a": {"env": "prod", "tier": "1"}, "b": {"env": "dev", "tier": "2"}, "c": {"env": ""}, "d": {},
	} {
		w.create(t, name, func(o *hcloud.ServerCreateOpts) { o.Labels = labels })
	}
	cases := map[string]string{
		"": "abcd", "env": "abc", "!env": "d", "env=prod": "a", "env==prod": "a", "env!=prod": "bcd", "env=": "c",
		"env in (prod,dev)": "ab", "env in ( prod , dev ),tier=2": "b", "env notin (prod)": "bcd", "env,tier!=1": "bc", "tier,!env": "",
	}
	for sel, want := range cases {
		found, err := w.client.Server.AllWithOpts(t.Context(), hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{LabelSelector: sel}})
		if err != nil {
			t.Errorf("%q: %v", sel, err)
			continue
		}
		var got []string
		for _, sv := range found {
			got = append(got, sv.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, join(got)); diff != "" {
			t.Errorf("%q: %s", sel, diff)
		}
	}
}

func join(list []string) (s string) {
	for _, e := range list {
		s += e
	}
	return s
}

// TestActions lists actions by ID, by server and by status.
func TestActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sv := w.create(t, "vm-1")
	a, _, err := w.client.Server.Reboot(t.Context(), sv)
	if err != nil {
		t.Fatal(err)
	}
	other := w.create(t, "vm-2")
	all, err := w.client.Server.Action.All(t.Context(), hcloud.ActionListOpts{})
	if err != nil || len(all) != 5 {
		t.Errorf("all actions of servers: got %v, %v", all, err)
	}
	of, _, err := w.client.Action.List(t.Context(), hcloud.ActionListOpts{ID: []int64{a.ID, 99}})
	if err != nil || len(of) != 1 || of[0].Command != "reboot_server" || of[0].Resources[0].ID != sv.ID {
		t.Errorf("by ID: got %+v, %v", of, err)
	}
	_ = other
	if gone, _, err := w.client.Action.GetByID(t.Context(), 99); gone != nil || err != nil {
		t.Errorf("missing action: got %v, %v", gone, err)
	}
}
