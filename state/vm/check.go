package vm

import (
	"strings"

	"github.com/errand-bot/errand/state/kv"
)

// Check finds inconsistencies in the rows, the bills and the roster. keys are all keys of the store. It calls want for
// each of its keys that must exist, with the key that refers to it, and problem for each inconsistency.
func (s *Rows) Check(r kv.Reader, keys []string, want func(key, owner string), problem func(format string, args ...any)) {
	roster := false
	for _, key := range keys {
		switch {
		case strings.HasPrefix(key, preVM):
			s.checkRow(r, key, want, problem)
		case key == keyRoster:
			roster = true
			want(key, key)
		case key == keyVMTimes, key == keyVMImages, strings.HasPrefix(key, preVMTask), strings.HasPrefix(key, preVMMonth):
			want(key, key)
		}
	}
	if roster {
		s.checkRoster(r, keys, problem)
	}
}

func (s *Rows) checkRow(r kv.Reader, key string, want func(key, owner string), problem func(format string, args ...any)) {
	want(key, key)
	var row Row
	if err := s.codec.GetJSON(r, key, &row); err != nil {
		problem("%v", err)
		return
	}
	if rowKey(row.Name) != key {
		problem("%s holds VM %s", key, row.Name)
	}
	if row.Phase == Gone && row.EndedAt.IsZero() {
		problem("%s is gone and has no end", key)
	}
	if row.Phase.Over() && row.EndReason == "" {
		problem("%s is %s without a reason", key, row.Phase)
	}
	if row.EndedAt.IsZero() {
		want(keyRoster, key)
	}
}

// checkRoster checks that the roster holds exactly the VMs whose bills are open, with the values of their rows.
func (s *Rows) checkRoster(r kv.Reader, keys []string, problem func(format string, args ...any)) {
	o, err := s.getRoster(r)
	if err != nil {
		problem("%v", err)
		return
	}
	listed := map[string]bool{}
	for _, v := range o.Open {
		row, err := s.get(r, v.Name)
		if err != nil {
			problem("%s: %v", keyRoster, err)
			continue
		}
		if listed[v.Name] {
			problem("%s has VM %s twice", keyRoster, v.Name)
		}
		listed[v.Name] = true
		if !row.EndedAt.IsZero() {
			problem("%s has VM %s, whose bill is closed", keyRoster, v.Name)
		}
		if v.Task != row.Task || !v.CreatedAt.Equal(row.CreatedAt) || v.MicroHour != row.MicroHour ||
			v.Paid != row.Paid || v.Phase.Over() != row.Phase.Over() {
			problem("%s and the row of VM %s differ", keyRoster, v.Name)
		}
	}
	for _, key := range keys {
		name, ok := strings.CutPrefix(key, preVM)
		if !ok {
			continue
		}
		if row, err := s.get(r, name); err == nil && row.EndedAt.IsZero() && !listed[row.Name] {
			problem("%s is not in %s", key, keyRoster)
		}
	}
}
