// Command clis installs the agents' programs for tests, as errand setup does for operators.
//
// Its argument is the folder. It prints the version that each program reports. Start with main.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/agent/programs"
)

// versionTimeout is how long a program may take to report its version.
const versionTimeout = time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "clis:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: clis FOLDER")
	}
	if err := os.RemoveAll(filepath.Join(args[0], "node_modules")); err != nil { // an earlier layout, of 900 MB
		return err
	}
	for _, name := range programs.Names() {
		if !programs.Installed(args[0], name) {
			if err := programs.Install(context.Background(), args[0], name); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
		out, err := exec.CommandContext(ctx, filepath.Join(programs.Bin(args[0]), name), "--version").CombinedOutput()
		cancel()
		if err != nil {
			return fmt.Errorf("%s does not run: %w\n%s", name, err, out)
		}
		fmt.Printf("%s: %s", name, out)
	}
	return nil
}
