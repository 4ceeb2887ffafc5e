package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// TestMain lets the test binary be process 1 of a namespace, and a program that leaves nothing behind.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == InitCommand {
		os.Exit(Init(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == tidyCommand {
		os.Exit(endOrphansOfCommand())
	}
	if len(os.Args) > 1 && os.Args[1] == nestCommand {
		os.Exit(runNested(os.Args[2:]))
	}
	os.Exit(m.Run())
}

const tidyCommand = "tidy"

// endOrphansOfCommand starts a command that leaves a process in its own session, and ends the remaining processes.
func endOrphansOfCommand() int {
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

const nestCommand = "nest"

// runNested runs itself through RunAlone to the depth of the first argument, and inside that a shell script to the depth of
// the second, like a git filter that runs git. It prints the first error of each level.
func runNested(args []string) int {
	level, err := strconv.Atoi(args[0])
	times, err2 := strconv.Atoi(args[1])
	if err := errors.Join(err, err2); err != nil {
		fmt.Println(err)
		return 1
	}
	argv := []string{selfPath, nestCommand, strconv.Itoa(level - 1), args[1], args[2]}
	if level == 0 {
		argv = []string{"sh", "-c", args[2]}
	} else {
		times = 1
	}
	for range times {
		err := RunAlone(func() *exec.Cmd {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			return cmd
		})
		if err != nil {
			fmt.Printf("level %d: %v\n", level, err)
			return 1
		}
	}
	return 0
}
