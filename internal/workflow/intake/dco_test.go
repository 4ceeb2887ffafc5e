package intake

import "testing"

// TestChecksForSignOffs: a check for sign-offs is recognized by the names that such programs use.
func TestChecksForSignOffs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"DCO": true, "dco": true, "DCO / check": true, "ci/dco": true, "check-dco": true, "dco2": true, "Verify DCO sign-off": true,
		"Signed-off-by": true, "signoff": true, "sign off": true, "Developer Certificate of Origin": true,
		"lint": false, "mesos-dcos": false, "redcode": false, "design": false, "Sign in": false, "": false,
	} {
		if got := dcoName.MatchString(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
