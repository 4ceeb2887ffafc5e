package bake

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// someFleet is a fleet of the cloud's VMs and of VMs that are only names.
type someFleet struct {
	*cloud
	specs []fleet.AcquireSpec
	list  []fleet.VM
	gone  []string
	err   error
}

var _ Fleet = (*someFleet)(nil)

func (f *someFleet) Acquire(ctx context.Context, spec fleet.AcquireSpec) (fleet.VM, error) {
	f.specs = append(f.specs, spec)
	return f.cloud.Acquire(ctx, Order{Owner: spec.Owner})
}

func (f *someFleet) Get(_ context.Context, name string) (fleet.VM, error) {
	b := f.vms[name]
	key := string(ssh.MarshalAuthorizedKey(b.host.PublicKey()))
	return fleet.VM{Name: name, Endpoint: remote.Endpoint{Network: "unix", Address: b.ln.Addr().String(), User: "errand", HostKeys: []string{key}}}, f.err
}

func (f *someFleet) List(context.Context) ([]fleet.VM, error) { return f.list, f.err }

func (f *someFleet) Client(ctx context.Context, name string) (*remote.Client, error) {
	return f.Connect(ctx, name, false)
}

func (f *someFleet) Release(_ context.Context, name string, _ fleet.Reason) error {
	f.gone = append(f.gone, name)
	return nil
}

func baking(group, name string) fleet.VM {
	return fleet.VM{Name: name, Labels: map[string]string{fleet.LabelKind: fleet.ImageBaking, fleet.LabelGroup: group}}
}

// TestOnFleet: VMs left by earlier bakes of the group are deleted first, and no others. Root has one connection, which
// ends with the VM.
func TestOnFleet(t *testing.T) {
	t.Parallel()
	f := &someFleet{cloud: newCloud(t), list: []fleet.VM{baking("web", "old"), baking("app", "other"), {Name: "of-a-task"}}}
	vms := OnFleet(f, remote.Config{Signer: f.signer}, "root")
	order := Order{Owner: "bake-web", Image: "debian-13", Type: "cx23", Location: "fsn1", Labels: map[string]string{fleet.LabelKind: fleet.ImageBaking, fleet.LabelGroup: "web"}}
	vm, err := vms.Acquire(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	want := []fleet.AcquireSpec{{Owner: "bake-web", Image: "debian-13", Labels: order.Labels, Candidates: []fleet.Candidate{{Type: "cx23", Location: "fsn1"}}}}
	if diff := cmp.Diff(want, f.specs) + cmp.Diff([]string{"old"}, f.gone); diff != "" {
		t.Error(diff)
	}
	first, err := vms.Connect(t.Context(), vm.Name, true)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := vms.Connect(t.Context(), vm.Name, true); err != nil || second != first {
		t.Errorf("another connection for root, %v", err)
	}
	if agents, err := vms.Connect(t.Context(), vm.Name, false); err != nil || agents == first {
		t.Errorf("root's connection for the agent's user, %v", err)
	}
	if err := vms.Release(t.Context(), vm.Name, fleet.ReasonDone); err != nil || first.Err() == nil {
		t.Errorf("%v; root's connection ended with %v", err, first.Err())
	}
	if err := vms.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"old", vm.Name, "old", "other"}, f.gone); diff != "" {
		t.Error(diff)
	}
	f.err = errors.New("incomplete list")
	if _, err := vms.Acquire(t.Context(), order); !errors.Is(err, f.err) || len(f.specs) != 1 {
		t.Errorf("it continued without a list: %v", err)
	}
}
