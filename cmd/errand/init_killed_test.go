package main

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestInitCleansUpAfterAKilledOne: the sandbox and the folder of an init that was killed while a command ran are deleted by the next one.
func TestInitCleansUpAfterAKilledOne(t *testing.T) {
	c, _ := sandboxed(t, "sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "errand"), "init", "acme/app", "--yes", "-c", c.file())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var text strings.Builder
	for lines.Scan() && !strings.Contains(lines.Text(), "check: make test …") {
		text.WriteString(lines.Text() + "\n")
	}
	killed := cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if strings.Contains(text.String(), "this host has no sandbox") {
		t.Skip("this host has no sandbox that isolates: " + text.String())
	}
	if killed != nil || len(leftovers(t)) != 1 || len(c.supervisors()) == 0 {
		t.Fatalf("%v; left are %v and the processes %q\n%s", killed, leftovers(t), c.supervisors(), &text)
	}
	if code, out, errs := c.initiate("app", "--dry-run", "--no-play"); code != 0 || errs != "" {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	if left, processes := leftovers(t), c.supervisors(); len(left)+len(processes) > 0 {
		t.Errorf("%v and the processes %q remain", left, processes)
	}
}
