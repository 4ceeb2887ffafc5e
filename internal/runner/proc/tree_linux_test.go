package proc

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want entry
		ok   bool
	}{
		"ordinary":       {"7 (sleep) S 3 7 7 0 -1 4194304 95 0 0 0 1 2 3 4 20 0 1 0 100 0 0", entry{pid: 7, parent: 3, ticks: 10, began: 100}, true},
		"zombie":         {"8 (sh) Z 3 7 7 0 -1 4194304 95 0 0 0 0 0 0 0 20 0 1 0 100", entry{pid: 8, parent: 3, zombie: true, began: 100}, true},
		"hostile name":   {"9 (a) Z 1 (b) S 4 7 7 0 -1 4194304 95 0 0 0 0 5 0 0 20 0 1 0 100", entry{pid: 9, parent: 4, ticks: 5, began: 100}, true},
		"name with line": {"9 (a\nb) R 4 7 7 0 -1 4194304 95 0 0 0 0 5 0 0 20 0 1 0 100", entry{pid: 9, parent: 4, ticks: 5, began: 100}, true},
		"empty":          {"", entry{}, false},
		"cut":            {"9 (a) R 4 7", entry{}, false},
		"no number":      {"x (a) R 4 7 7 0 -1 4194304 95 0 0 0 0 5 0 0 20 0 1 0 100", entry{}, false},
		"no parent":      {"9 (a) R x 7 7 0 -1 4194304 95 0 0 0 0 5 0 0 20 0 1 0 100", entry{}, false},
		"no beginning":   {"9 (a) R 4 7 7 0 -1 4194304 95 0 0 0 0 5 0 0 20 0 1 0 x", entry{}, false},
		"no time":        {"9 (a) R 4 7 7 0 -1 4194304 95 0 0 0 0 y 0 0 20 0 1 0 100", entry{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseStat([]byte(test.text))
			if ok != test.ok || ok && got != test.want {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
}

func TestOwnNumbers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status string
		want   bool
	}{
		"own namespace":     {"Name:\tsh\nPid:\t7\nNSpid:\t7\nNSpgid:\t7\n", true},
		"outer namespace":   {"Name:\tsh\nPid:\t4711\nNSpid:\t4711\t7\nNSpgid:\t4711\t7\n", false},
		"same number twice": {"Pid:\t7\nNSpid:\t7\t7\n", false},
		"hostile name":      {"Name:\tx\\nNSpid: 1\nNSpid:\t4711\t7\n", false},
		"no namespaces":     {"Name:\tsh\nPid:\t7\n", true},
	} {
		if got := isOwnPIDNamespace(test.status); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDescendants(t *testing.T) {
	t.Parallel()
	all := []entry{
		{pid: 1, parent: 0}, {pid: 2, parent: 1}, {pid: 5, parent: 3}, {pid: 3, parent: 2}, {pid: 4, parent: 1},
		{pid: 6, parent: 6}, // a table read while it changes may hold anything
		{pid: 7, parent: 8}, {pid: 8, parent: 7},
	}
	tests := map[int][]int{1: {2, 3, 4, 5}, 2: {3, 5}, 5: nil, 6: nil, 7: {8}, 99: nil}
	for root, want := range tests {
		var got []int
		for _, e := range descendants(all, root) {
			got = append(got, e.pid)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("beneath %d (-want +got):\n%s", root, diff)
		}
	}
}
