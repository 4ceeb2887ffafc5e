package pushgate

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
)

func TestUnreadable(t *testing.T) {
	t.Parallel()
	decode := func(text string, limits changeset.Limits) error {
		_, err := changeset.Decode(strings.NewReader(text), limits)
		return err
	}
	small := changeset.DefaultLimits()
	small.Encoded = 4
	broken := &changeset.Changeset{Base: strings.Repeat("a", 40), Commits: []changeset.Commit{{ID: strings.Repeat("x", 10_000)}}}
	var wire bytes.Buffer
	if err := changeset.Encode(&wire, broken); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		err          error
		rule, detail string
	}{
		"none":                {},
		"something else":      {err: fmt.Errorf("reach the VM: %w", context.DeadlineExceeded)},
		"not JSON":            {err: decode("{", changeset.DefaultLimits()), rule: RuleForm, detail: "(unexpected EOF)"},
		"two objects":         {err: decode(`{"base":"`+broken.Base+`"}{}`, changeset.DefaultLimits()), rule: RuleForm, detail: "(unexpected data after the object)"},
		"a hostile id, cut":   {err: fmt.Errorf("from VM x: %w", decode(wire.String(), changeset.DefaultLimits())), rule: RuleForm, detail: "(commit 1 (a text of 10000 bytes)"},
		"too large":           {err: decode("{      }", small), rule: RuleSize, detail: "(more than 4 bytes encoded)"},
		"too large to be run": {err: fmt.Errorf("%w: %w", changeset.ErrTooLarge, context.Canceled), rule: RuleSize, detail: "(context canceled)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ok := Unreadable(tc.err, nil)
			if ok != (tc.rule != "") || r.Rule != tc.rule || !strings.Contains(r.Detail, tc.detail) {
				t.Errorf("%v: %+v, %t; want rule %q with %q", tc.err, r, ok, tc.rule, tc.detail)
			}
			if len(r.Detail) > 300 || ok && r.Remedy == "" {
				t.Errorf("got detail of %d bytes, remedy %q", len(r.Detail), r.Remedy)
			}
		})
	}
}
