package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/egress"
)

// TestRegistries: doctor says which registry refuses its credential and which cannot be reached, and what to do.
func TestRegistries(t *testing.T) {
	t.Parallel()
	list := doctor.RegistryCheck(func(context.Context) map[string]error {
		return map[string]error{
			"works": nil, "refused": fmt.Errorf("%w (401)", egress.ErrCredentialRefused), "forbidden": egress.ErrForbidden, "lost": errors.New("reach the registry: no such host"),
		}
	})(t.Context())
	want := []struct {
		check  string
		status doctor.Status
		fix    string
	}{
		{"registries.forbidden", doctor.Warning, "Download a package"}, {"registries.lost", doctor.Failed, "registries.lost.url"}, {"registries.refused", doctor.Failed, "the file of registries.refused.token"}, {"registries.works", doctor.OK, ""},
	}
	if len(list) != len(want) {
		t.Fatalf("got %+v", list)
	}
	for i, w := range want {
		if f := list[i]; f.Check != w.check || f.Status != w.status || !strings.Contains(f.Fix, w.fix) || (f.Fix == "") != (w.fix == "") {
			t.Errorf("got %+v, want %+v", f, w)
		}
	}
}
