package realcli

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/errand-bot/errand/e2e/stage"
)

// common is set once by TestMain, before any test runs.
var common stage.Shared

// atOnce is the number of parallel worlds; most of them wait for the end of a cut.
const atOnce = "8"

// TestMain builds the runner if any test runs.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(full) == "" {
		os.Exit(m.Run())
	}
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	dir, err := os.MkdirTemp("", "errand-realcli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	common = stage.Prepare(dir)
	if common.Err == nil {
		common.Err = os.Symlink("errand-runner", filepath.Join(dir, "errand-runner-linux-"+runtime.GOARCH))
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

const (
	full     = "ERRAND_TEST_FULL"   // enables long tests
	required = "ERRAND_REQUIRE_NPM" // makes missing programs or sandboxes an error
	clis     = "../../.cache/clis/bin"
)

// program returns the path of a real agent program that `make clis` has installed, and skips the test if it is missing.
func program(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv(full) == "" {
		t.Skipf("the real %s is run only with %s=1", name, full)
	}
	if common.Err != nil {
		t.Fatal(common.Err)
	}
	if err := exec.CommandContext(t.Context(), "bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true").Run(); err != nil {
		if os.Getenv(required) != "" {
			t.Fatalf("%s requires the real %s, but bubblewrap, which its sandboxes need, does not work here: %v", required, name, err)
		}
		t.Skipf("the real %s needs sandboxes without network: bubblewrap does not work here: %v", name, err)
	}
	path, err := filepath.Abs(filepath.Join(clis, name))
	check(t, err)
	path, err = filepath.EvalSymlinks(path)
	switch {
	case err == nil:
	case os.Getenv(required) != "":
		t.Fatalf("%s is not installed, but %s requires it: run `make clis`", name, required)
	default:
		t.Skipf("%s is not installed: run `make clis`, which needs npm and the network", name)
	}
	return path
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
