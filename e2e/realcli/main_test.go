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

// atOnce is how many worlds there are at a time: most of them wait for a cut to pass.
const atOnce = "8"

// TestMain builds the runner, if there is anything to run.
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
	full     = "ERRAND_TEST_FULL"   // asks for what takes long
	required = "ERRAND_REQUIRE_NPM" // makes the absence of the programs, or of boxes for them, an error
	clis     = "../../.cache/clis/bin"
)

// program finds a real agent program, where `make clis` has put it, and skips the test if it is not there.
func program(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv(full) == "" {
		t.Skipf("the real %s is driven only with %s=1", name, full)
	}
	if common.Err != nil {
		t.Fatal(common.Err)
	}
	if err := exec.CommandContext(t.Context(), "bwrap", "--ro-bind", "/", "/", "--unshare-all", "--proc", "/proc", "--dev", "/dev", "true").Run(); err != nil {
		if os.Getenv(required) != "" {
			t.Fatalf("%s says that the real %s has to be driven, and bubblewrap, which its boxes need, does not work here: %v", required, name, err)
		}
		t.Skipf("the real %s needs boxes without network: bubblewrap does not work here: %v", name, err)
	}
	path, err := filepath.Abs(filepath.Join(clis, name))
	check(t, err)
	path, err = filepath.EvalSymlinks(path)
	switch {
	case err == nil:
	case os.Getenv(required) != "":
		t.Fatalf("%s is not installed, and %s says that it has to be: run `make clis`", name, required)
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
