package hetzner

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestContainersReachTheTether: the address that the first boot opens to containers is the one on which the VM's end of
// the tether listens.
func TestContainersReachTheTether(t *testing.T) {
	t.Parallel()
	conf, err := os.ReadFile("../cloudinit/files/containers.conf")
	if want := fmt.Sprintf("\npasta_options = [\"-T\", \"%d\"]\n", tetherPort); err != nil || !strings.Contains(string(conf), want) {
		t.Errorf("want %q, and there is %q, %v", want, conf, err)
	}
}
