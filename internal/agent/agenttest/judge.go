package agenttest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/errand-bot/errand/internal/shellrules"
)

// ServeHook makes the test binary act as errand-runner's judge of tool calls, if it was started as such a hook, and
// then exits. Call it first in TestMain; a run uses it if ERRAND_RUNNER in its environment names the test binary.
func ServeHook() {
	if len(os.Args) > 3 && os.Args[1] == "judge" {
		os.Exit(serveHook(os.Args[3], slices.Contains(os.Args, "--refuse-only")))
	}
}

func serveHook(path string, refuseOnly bool) int {
	var rules shellrules.Rules
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &rules)
	}
	if err == nil {
		err = rules.Hook(os.Stdin, os.Stdout, refuseOnly)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
