package proc

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// TestMain lets the test binary be process 1 of a namespace, and a program that leaves nothing behind.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == InitCommand {
		os.Exit(Init(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == tidyCommand {
		os.Exit(tidy())
	}
	os.Exit(m.Run())
}

const tidyCommand = "tidy"

// tidy starts a command that leaves a process in a session of its own, and ends what is left.
func tidy() int {
	err := Adopt()
	if err == nil {
		cmd := exec.Command("sh", "-c", "setsid sleep 1000 & echo here")
		cmd.Stdout = os.Stdout
		err = cmd.Run()
	}
	if err == nil {
		err = EndOrphans()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}
