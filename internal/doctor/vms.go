package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/gateway"
)

// VMs describes the VM provider and the VMs of a running errand.
type VMs struct {
	Describe func(context.Context) (fleet.Description, error)
	// Alarms returns the problems at the provider that the running errand knows; nil if none runs.
	Alarms func() []fleet.Alarm
	// InUse returns the number of VMs; nil if they can only be counted by a running errand.
	InUse func(context.Context) (int, error)
	// LastRefusal returns the latest order that the provider refused; nil if errand does not run, or its VMs cost nothing.
	LastRefusal func() fleet.OrderRefusal
	// TokenProblem returns a sentence about the credential if the provider refuses it, and fleet.ErrUnknownOutcome if only reading could be tried; nil for sandboxes.
	TokenProblem func(context.Context) (string, error)
	API          string // the address of the provider's API
	// ImageProblem returns a sentence about the image of VMs if it cannot be used; nil for sandboxes.
	ImageProblem func(context.Context) (string, error)
	// SSHProbe is a host whose SSH port errand must be able to reach if it can reach VMs; empty: not checked.
	SSHProbe string
	Limit    int // limits.vms
	// MayBeUnsandboxed reports that agents may run without isolation.
	MayBeUnsandboxed bool
	ChosenPlain      bool // local.kind is plain
	InContainer      bool // errand is the program of a container
	Now              func() time.Time
}

// VMCheck checks the VM provider: its credentials, isolation, the server types and prices, and the VMs in use.
func VMCheck(v VMs) Check {
	return func(ctx context.Context) []Finding {
		list, usable := v.token(ctx)
		if !usable { // what follows asks the provider, except for what the running errand knows
			return append(list, v.refusal()...)
		}
		list = append(list, v.provider(ctx)...)
		list = append(list, v.image(ctx)...)
		list = append(list, v.ssh(ctx)...)
		list = append(list, v.refusal()...)
		if v.InUse == nil {
			return append(list, Finding{Check: "vms.count", Status: Skipped, Found: "errand does not run, so its VMs were not counted."})
		}
		return append(list, v.count(ctx)...)
	}
}

const newToken = "Create a token with read and write permission in the project's security settings at Hetzner, put it in the file of hetzner.token, and restart errand."

// token checks whether the provider can be reached and accepts the credential.
func (v VMs) token(ctx context.Context) (list []Finding, usable bool) {
	const check = "vms.token"
	if v.TokenProblem == nil {
		return nil, true
	}
	problem, err := v.TokenProblem(ctx)
	switch {
	case errors.Is(err, fleet.ErrLimited):
		return []Finding{{
			Check: check, Status: Skipped, Found: fmt.Sprintf("The provider's rate limit is reached: %v", err),
			Fix: "Run this again in some minutes. If it stays, look for another program that uses the project.",
		}}, false
	case errors.Is(err, fleet.ErrUnknownOutcome):
		return []Finding{{
			Check: check, Status: Skipped, Found: fmt.Sprintf("The provider accepts the token for reading; whether it may write could not be checked: %v", err),
			Fix: "Run this again in some minutes.",
		}}, true
	case err != nil:
		return []Finding{{
			Check: check, Status: Failed, Found: fmt.Sprintf("The provider %s could not be used: %v", v.API, err), Meaning: "VMs can be neither created nor deleted.",
			Fix: fmt.Sprintf("Run `curl -v %s/ssh_keys` on this host, which has to print 401; check hetzner.endpoint, DNS, the firewall, HTTPS_PROXY and status.hetzner.com.", v.API),
		}}, false
	case problem != "":
		return []Finding{{Check: check, Status: Failed, Found: problem, Meaning: "No VM can be created, so no agent starts.", Fix: newToken}}, false
	}
	return []Finding{{Check: check, Status: OK, Found: "The provider accepts the token, for reading and writing."}}, true
}

// refusal shows the latest order that the provider refused.
func (v VMs) refusal() []Finding {
	const check = "vms.refusal"
	if v.LastRefusal == nil {
		return nil
	}
	r := v.LastRefusal()
	if r.Err == nil {
		return []Finding{{Check: check, Status: OK, Found: "The provider has refused no order since errand started, or since the last success."}}
	}
	f := Finding{
		Check: check, Status: Warning, Found: fmt.Sprintf("The provider refused the latest order of a VM (%s, %s): %v", r.Candidate, r.At.UTC().Format("2006-01-02 15:04 MST"), r.Err),
		Meaning: "Tasks wait for a VM.", Fix: "Correct the settings of hetzner that the message names, and restart errand.",
	}
	switch {
	case errors.Is(r.Err, fleet.ErrQuota):
		f.Fix = "Request a higher limit in Hetzner's console (Limits), or lower limits.vms and restart errand."
	case errors.Is(r.Err, fleet.ErrNoCapacity):
		f.Fix = "None is needed if it is rare: errand tries the other candidates, and this one again. Otherwise add types or locations to hetzner.candidates and restart errand."
	case errors.Is(r.Err, fleet.ErrUnauthorized):
		f.Fix = newToken
	}
	return []Finding{f}
}

func (v VMs) provider(ctx context.Context) []Finding {
	const check = "vms.provider"
	d, err := v.Describe(ctx)
	if err != nil {
		return []Finding{{
			Check: check, Status: Failed, Found: fmt.Sprintf("No VM can be created: %v", err),
			Meaning: "Agents cannot start.", Fix: "See docs/sandboxes.md or docs/hetzner.md for what this host or the account needs.",
		}}
	}
	var list []Finding
	for _, note := range d.Notes {
		list = append(list, Finding{Check: check, Status: Note, Found: note})
	}
	orderable := 0
	for _, c := range d.Choices {
		if c.Orderable(v.Now()) {
			orderable++
		}
	}
	switch best, ok := d.Cheapest(v.Now()); {
	case d.Kind == "cloud" && len(d.Choices) == 0:
		list = append([]Finding{{
			Check: check, Status: Failed, Found: "The provider does not show its server types.", Meaning: "No VM can be created, so no agent starts.", Fix: newToken,
		}}, list...)
	case d.Kind == "cloud" && orderable == 0:
		list = append([]Finding{{
			Check: check, Status: Failed, Found: "None of hetzner.candidates can be ordered now.", Meaning: "Tasks wait for a VM.",
			Fix: "Add other server types or locations to hetzner.candidates, and restart errand.",
		}}, list...)
	case ok:
		list = append(list, Finding{Check: check, Status: OK, Found: fmt.Sprintf("%d of %d candidates can be ordered, the cheapest is %s for %.4f %s an hour.", orderable, len(d.Choices), best, float64(best.Offer.MicroHour)/1e6, best.Offer.Currency)})
	case d.Isolation == fleet.IsolationNone && !v.MayBeUnsandboxed:
		f := Finding{
			Check: check, Status: Failed, Found: "This host cannot isolate agents.", Meaning: "errand refuses to start real agents.",
			Fix: "Install bubblewrap: `apt-get install bubblewrap`, or set provider: hetzner.",
		}
		if v.ChosenPlain {
			f.Found = "local.kind is plain, which does not isolate agents."
			f.Fix = "Set local.kind to auto, which takes the best kind that works on this host, and restart errand."
		}
		if v.InContainer {
			f.Found, f.Meaning = "This container cannot isolate agents.", "errand does not start."
			f.Fix = "Set provider: hetzner, or run errand as a service of the host: see docs/deployment.md."
		}
		list = append([]Finding{f}, list...)
	case d.Isolation == fleet.IsolationNone:
		list = append([]Finding{{
			Check: check, Status: Warning, Found: "Agents run without isolation.", Meaning: "An agent can read and change everything that errand's user can, also errand's secrets.",
			Fix: "Install bubblewrap: `apt-get install bubblewrap`, remove local.allow_unsandboxed and `kind: plain` from the configuration, and restart errand.",
		}}, list...)
	default:
		list = append(list, Finding{Check: check, Status: OK, Found: fmt.Sprintf("Agents run in sandboxes of the kind %s (isolation: %s).", d.Kind, d.Isolation)})
	}
	return list
}

func (v VMs) image(ctx context.Context) []Finding {
	const check = "vms.image"
	if v.ImageProblem == nil {
		return nil
	}
	problem, err := v.ImageProblem(ctx)
	switch {
	case err != nil:
		return []Finding{{Check: check, Status: Skipped, Found: fmt.Sprintf("The image could not be read: %v", err)}}
	case problem != "":
		return []Finding{{Check: check, Status: Failed, Found: problem, Meaning: "VMs without a baked image cannot be created.", Fix: "Set hetzner.image to an image that the project has, such as ubuntu-24.04, and restart errand."}}
	}
	return []Finding{{Check: check, Status: OK, Found: "The image of VMs can be used."}}
}

// dialTimeout bounds the connection to an SSH port.
const dialTimeout = 5 * time.Second

// ssh checks that this host's firewall lets SSH out.
func (v VMs) ssh(ctx context.Context) []Finding {
	if v.SSHProbe == "" {
		return nil
	}
	f := Finding{Check: "vms.ssh", Status: OK, Found: "SSH connections to other hosts work."}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", v.SSHProbe)
	if err != nil {
		f.Status, f.Found = Warning, fmt.Sprintf("%s could not be reached: %v", v.SSHProbe, err)
		f.Meaning, f.Fix = "If no SSH connection can leave this host, errand cannot reach its VMs.", "Allow outgoing connections to port 22 in the firewall of this host and its network."
		return []Finding{f}
	}
	_ = conn.Close()
	return []Finding{f}
}

// alarms returns the alarms that no other finding shows.
func (v VMs) alarms() []fleet.Alarm {
	if v.Alarms == nil {
		return nil
	}
	shown := v.LastRefusal != nil && errors.Is(v.LastRefusal().Err, fleet.ErrQuota)
	return slices.DeleteFunc(v.Alarms(), func(a fleet.Alarm) bool { return shown && a.Kind == fleet.AlarmAccount })
}

func (v VMs) count(ctx context.Context) []Finding {
	const check = "vms.count"
	var list []Finding
	for _, a := range v.alarms() {
		list = append(list, Finding{
			Check: check, Status: Warning, Found: fmt.Sprintf("%s %s: %s.", a.Kind, a.Name, a.Explanation),
			Fix: "See the alarms in docs/troubleshooting.md; the page /vms has the details.",
		})
	}
	n, err := v.InUse(ctx)
	switch {
	case err != nil:
		return append(list, Finding{Check: check, Status: Skipped, Found: fmt.Sprintf("The VMs could not be counted: %v", err)})
	case v.Limit > 0 && n >= v.Limit:
		return append(list, Finding{
			Check: check, Status: Warning, Found: fmt.Sprintf("All %d VMs of limits.vms are in use.", v.Limit),
			Meaning: "Further tasks wait in the queue.", Fix: "None is needed, unless tasks wait long: then raise limits.vms and restart errand.",
		})
	}
	return append(list, Finding{Check: check, Status: OK, Found: fmt.Sprintf("%d of %d VMs are in use.", n, v.Limit)})
}

// ModelCheck checks whether the providers of models accept errand's keys, by a call that is free of charge.
func ModelCheck(try func(context.Context) map[string]error) Check {
	return func(ctx context.Context) []Finding {
		tried := try(ctx)
		var list []Finding
		for _, name := range slices.Sorted(maps.Keys(tried)) {
			f := Finding{Check: "models." + name, Status: OK, Found: "The provider accepts the key or the subscription."}
			var unclear gateway.UnclearError
			if err := tried[name]; errors.As(err, &unclear) {
				f.Status, f.Found = Skipped, err.Error()+"."
				if unclear.Status == http.StatusTooManyRequests || unclear.Status >= http.StatusInternalServerError {
					f.Status, f.Meaning = Warning, "Agents that use this provider probably fail too."
					f.Fix = fmt.Sprintf("See the provider's status page, and check models.%s.url.", name)
				}
			} else if err != nil {
				f.Status, f.Found, f.Meaning = Failed, err.Error(), "Agents that use this provider cannot work."
				f.Fix = fmt.Sprintf("Check models.%s.url, DNS, the firewall and HTTPS_PROXY with `curl -v` on this host.", name)
				if errors.Is(err, gateway.ErrKeyRefused) {
					f.Fix = fmt.Sprintf("Create a key at the provider, put it in the file of models.%s.key, and restart errand.", name)
				}
			}
			list = append(list, f)
		}
		return list
	}
}
