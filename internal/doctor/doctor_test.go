package doctor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/forge"
)

// findings returns the findings of one check by its name.
func findings(t *testing.T, c doctor.Check, name string) []doctor.Finding {
	t.Helper()
	var list []doctor.Finding
	for _, f := range doctor.Run(t.Context(), c) {
		if f.Check == name {
			list = append(list, f)
		}
	}
	return list
}

func TestDisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		space  doctor.Space
		err    error
		status doctor.Status
		found  string
	}{
		"enough":         {space: doctor.Space{Bytes: 50e9, Inodes: 1e6}, status: doctor.OK, found: "50.0 GB"},
		"little":         {space: doctor.Space{Bytes: 1e9, Inodes: 1e6}, status: doctor.Warning, found: "1.0 GB"},
		"full":           {space: doctor.Space{Bytes: 1e6, Inodes: 1e6}, status: doctor.Failed, found: "0.0 GB"},
		"without inodes": {space: doctor.Space{Bytes: 50e9, Inodes: 12}, status: doctor.Failed, found: "12 inodes"},
		"btrfs":          {space: doctor.Space{Bytes: 50e9, NoInodes: true}, status: doctor.OK, found: "50.0 GB"},
		"unreadable":     {err: errors.New("input/output error"), status: doctor.Skipped, found: "input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := doctor.Host{Data: t.TempDir(), Free: func(string) (doctor.Space, error) { return c.space, c.err }}
			got := findings(t, doctor.HostCheck(h), "host.disk")
			if len(got) != 1 || got[0].Status != c.status || !strings.Contains(got[0].Found, c.found) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestVMs(t *testing.T) {
	t.Parallel()
	works := doctor.VMs{
		Describe: func(context.Context) (fleet.Description, error) {
			return fleet.Description{Kind: "bwrap", Isolation: fleet.IsolationFull, Notes: []string{"A note."}}, nil
		},
		Alarms: func() []fleet.Alarm { return nil }, InUse: func(context.Context) (int, error) { return 1, nil }, Limit: 3, Now: time.Now,
	}
	notIsolated := func(context.Context) (fleet.Description, error) {
		return fleet.Description{Kind: "plain", Isolation: fleet.IsolationNone}, nil
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for name, c := range map[string]struct {
		change func(*doctor.VMs)
		check  string
		status doctor.Status
		found  string
	}{
		"works":      {func(*doctor.VMs) {}, "vms.count", doctor.OK, "1 of 3 VMs are in use."},
		"a note":     {func(*doctor.VMs) {}, "vms.provider", doctor.Note, "A note."},
		"all in use": {func(v *doctor.VMs) { v.Limit = 1 }, "vms.count", doctor.Warning, "All 1 VMs"},
		"an alarm": {func(v *doctor.VMs) {
			v.Alarms = func() []fleet.Alarm {
				return []fleet.Alarm{{Kind: "server", Name: "x", Explanation: "the provider's limit for this account is reached"}}
			}
		}, "vms.count", doctor.Warning, "server x: the provider's limit for this account is reached."},
		"not running": {func(v *doctor.VMs) { v.InUse = nil }, "vms.count", doctor.Skipped, "errand does not run"},
		"broken": {func(v *doctor.VMs) {
			v.Describe = func(context.Context) (fleet.Description, error) {
				return fleet.Description{}, errors.New("no namespaces")
			}
		}, "vms.provider", doctor.Failed, "no namespaces"},
		"no isolation": {func(v *doctor.VMs) { v.Describe = notIsolated }, "vms.provider", doctor.Failed, "This host cannot isolate agents."},
		"no isolation, on purpose": {func(v *doctor.VMs) {
			v.Describe, v.MayBeUnsandboxed = notIsolated, true
		}, "vms.provider", doctor.Warning, "Agents run without isolation."},
		"no isolation, in a container": {func(v *doctor.VMs) {
			v.Describe, v.InContainer = notIsolated, true
		}, "vms.provider", doctor.Failed, "This container cannot isolate agents."},
		"no SSH": {func(v *doctor.VMs) { v.SSHProbe = closed.Addr().String() }, "vms.ssh", doctor.Warning, "could not be reached"},
		"a refused order": {func(v *doctor.VMs) {
			v.LastRefusal = refused(fmt.Errorf("%w: server limit", fleet.ErrQuota))
		}, "vms.refusal", doctor.Warning, "(cx33/fsn1, 2026-11-21 12:00 UTC): account limit reached: server limit"},
		"no refused order": {func(v *doctor.VMs) { v.LastRefusal = refused(nil) }, "vms.refusal", doctor.OK, "refused no order"},
		"a refused token": {func(v *doctor.VMs) {
			v.TokenProblem = func(context.Context) (string, error) { return "Hetzner refuses it.", nil }
		}, "vms.token", doctor.Failed, "Hetzner refuses it."},
		"the API is down": {func(v *doctor.VMs) {
			v.TokenProblem = func(context.Context) (string, error) { return "", errors.New("no such host") }
		}, "vms.token", doctor.Failed, "no such host"},
		"too many requests": {func(v *doctor.VMs) {
			v.TokenProblem = func(context.Context) (string, error) { return "", fleet.ErrLimited }
		}, "vms.token", doctor.Skipped, "rate limit"},
		"may it write?": {func(v *doctor.VMs) {
			v.TokenProblem = func(context.Context) (string, error) { return "", fmt.Errorf("%w: 503", fleet.ErrUnknownOutcome) }
		}, "vms.token", doctor.Skipped, "whether it may write could not be checked: outcome unknown: 503"},
		"what follows, then": {func(v *doctor.VMs) {
			v.TokenProblem = func(context.Context) (string, error) { return "", fleet.ErrUnknownOutcome }
		}, "vms.count", doctor.OK, "1 of 3"},
		"image unread": {func(v *doctor.VMs) {
			v.ImageProblem = func(context.Context) (string, error) { return "", errors.New("503") }
		}, "vms.image", doctor.Skipped, "503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := works
			c.change(&v)
			got := findings(t, doctor.VMCheck(v), c.check)
			if len(got) == 0 || got[0].Status != c.status || !strings.Contains(got[0].Found, c.found) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// refused returns the latest order that was refused, for a reason.
func refused(why error) func() fleet.OrderRefusal {
	return func() fleet.OrderRefusal {
		return fleet.OrderRefusal{At: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Candidate: fleet.Candidate{Type: "cx33", Location: "fsn1"}, Err: why}
	}
}

// TestRefusalHasAFix: the advice depends on the reason, and an alarm about the same limit is not shown twice.
func TestRefusalHasAFix(t *testing.T) {
	t.Parallel()
	for want, why := range map[string]error{
		"Request a higher limit": fleet.ErrQuota, "hetzner.candidates": &fleet.NoCapacityError{Reason: "none left"}, "Create a token": fleet.ErrUnauthorized,
		"Correct the settings of hetzner": fleet.ErrInvalid,
	} {
		got := doctor.Run(t.Context(), doctor.VMCheck(doctor.VMs{
			Describe: func(context.Context) (fleet.Description, error) {
				return fleet.Description{Isolation: fleet.IsolationFull}, nil
			},
			LastRefusal: refused(why), InUse: func(context.Context) (int, error) { return 0, nil }, Limit: 1, Now: time.Now,
			Alarms: func() []fleet.Alarm {
				return []fleet.Alarm{{Kind: fleet.AlarmAccount, Explanation: "the limit is reached"}}
			},
		}))
		text := fmt.Sprintf("%+v", got)
		if !strings.Contains(text, want) || strings.Contains(text, "the limit is reached") == errors.Is(why, fleet.ErrQuota) {
			t.Errorf("%v: got %s", why, text)
		}
	}
}

// releases answers about the latest release only.
type releases struct {
	doctor.GitHub
	latest string
	err    error
}

func (releases) ClockSkew(context.Context) (time.Duration, error) { return 0, nil }
func (releases) ReadApp(context.Context) (forge.App, error)       { return forge.App{Slug: "errand"}, nil }
func (releases) Webhook(context.Context) (forge.WebhookSettings, error) {
	return forge.WebhookSettings{}, errors.New("unread")
}

func (releases) RecentDeliveries(context.Context) ([]forge.Delivery, error) {
	return nil, errors.New("unread")
}
func (releases) Installations(context.Context) ([]forge.Installation, error) {
	return nil, errors.New("unread")
}
func (r releases) LatestRelease(context.Context, string, string) (string, error) {
	return r.latest, r.err
}

func TestRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version string
		api     releases
		there   bool
		status  doctor.Status
		found   string
	}{
		"newer":            {"v1.2.3", releases{latest: "v1.10.0"}, true, doctor.Note, "v1.10.0 is available; this is v1.2.3."},
		"the latest":       {"v1.10.0", releases{latest: "v1.10.0"}, true, doctor.OK, "v1.10.0 is the latest release."},
		"none yet":         {"v1.10.0", releases{}, true, doctor.OK, "the latest"},
		"built by hand":    {"devel-abc", releases{latest: "v1.10.0"}, true, doctor.Skipped, "no release"},
		"another GitHub":   {"v1.2.3", releases{latest: "v1.10.0"}, false, doctor.Skipped, "github.com"},
		"GitHub is broken": {"v1.2.3", releases{err: errors.New("502")}, true, doctor.Skipped, "502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := findings(t, doctor.GitHubCheck(c.api, doctor.GitHubConfig{Version: c.version, ReleasesThere: c.there, Now: time.Now}), "release")
			if len(got) != 1 || got[0].Status != c.status || !strings.Contains(got[0].Found, c.found) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestRunBoundsChecks: a check that hangs ends by its context, which the caller can end, too.
func TestRunBoundsChecks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := doctor.Run(ctx, func(ctx context.Context) []doctor.Finding {
		<-ctx.Done()
		return []doctor.Finding{{Check: "slow", Status: doctor.Skipped}}
	}, func(context.Context) []doctor.Finding {
		return []doctor.Finding{{Check: "fast", Status: doctor.Failed}}
	})
	if len(got) != 2 || got[0].Check != "fast" {
		t.Errorf("got %+v", got)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	r := doctor.Report{Version: "v1", Serving: true, Findings: []doctor.Finding{
		{Check: "config", Status: doctor.Failed, Found: "line 2: a\nline 3: b", Meaning: "errand does not start.", Fix: "Correct it."},
		{Check: "host.clock", Status: doctor.OK, Found: "It is right."},
		{Check: "host.disk", Status: doctor.OK, Found: "50.0 GB are free."},
	}}
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	const want = `errand v1, checked by the running errand: 1 failed, 0 warnings, 0 skipped, 2 ok

failed   config               line 2: a
                              line 3: b
                              errand does not start.
                              Fix: Correct it.

ok       host.clock           It is right.
ok       host.disk            50.0 GB are free.
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}
