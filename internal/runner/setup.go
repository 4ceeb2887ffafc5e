package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// Limits on the output of a failed set-up command in the message.
const (
	setupTailLines = 20
	setupTailBytes = 2000
)

// runSetup runs the set-up commands unless they have all succeeded in this workspace before. It returns the run's exit
// if one of them failed or the run was stopped meanwhile.
func (s *supervisor) runSetup() (exit runlog.Exit, failed bool) {
	if len(s.spec.Setup) == 0 {
		return runlog.Exit{}, false
	}
	if s.ready.SetUp {
		return runlog.Exit{}, false
	}
	for _, c := range s.spec.Setup {
		s.log.note("setup: %s", c.Command)
		before := s.log.position()
		exit := s.runCommand(runPart{
			command: proc.Command{Argv: []string{"/bin/sh", "-c", c.Command}},
			stdout:  runlog.StreamRunner, stderr: runlog.StreamRunner,
			duration: orDefault(c.Timeout, DefaultSetupTimeout), stall: -1,
		})
		switch {
		case exit.Cause == runlog.CauseStopped || exit.Cause == runlog.CauseLost:
			return exit, true
		case exit.Cause == runlog.CauseExited && exit.Code == 0:
			continue
		}
		return s.setupFailure(c, exit, before), true
	}
	if err := s.user.setUp(s.spec.Dir, s.spec.Setup); err != nil {
		s.log.note("setup: failed to record success: %v", err)
	}
	return runlog.Exit{}, false
}

func (s *supervisor) setupFailure(c SetupCommand, exit runlog.Exit, before int64) runlog.Exit {
	how := fmt.Sprintf("exit code %d", exit.Code)
	if exit.Cause == runlog.CauseDuration {
		how = "it exceeded its timeout of " + orDefault(c.Timeout, DefaultSetupTimeout).String()
	} else if exit.Cause == runlog.CauseStartFailed {
		how = exit.Message
	}
	message := fmt.Sprintf("setup command failed (%s): %s", how, c.Command)
	if tail := s.logTail(before); tail != "" {
		message += "\n" + tail
	}
	return runlog.Exit{Cause: runlog.CauseSetupFailed, Code: exit.Code, Signal: exit.Signal, Message: message}
}

// markSetUp records that the commands have succeeded in a workspace.
func markSetUp(root Root, dir string, commands []SetupCommand) error {
	marker := setupMarker(root, dir, commands)
	if err := os.MkdirAll(filepath.Dir(marker), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(marker, nil, 0o600)
}

// setupMarker returns the file that records the success of these commands in this workspace. It is in the workspace's
// git directory, so set-up runs again in a new workspace, and after a change of the list.
func setupMarker(root Root, dir string, commands []SetupCommand) string {
	text, err := json.Marshal(commands)
	if err != nil {
		text = fmt.Append(nil, commands)
	}
	sum := sha256.Sum256(append([]byte(dir+"\x00"), text...))
	home := filepath.Join(string(root), "setup")
	if info, err := os.Stat(filepath.Join(dir, ".git")); err == nil && info.IsDir() {
		home = filepath.Join(dir, ".git", "errand-setup")
	}
	return filepath.Join(home, hex.EncodeToString(sum[:16]))
}

// logTail returns the last lines of output after the given number of the log.
func (s *supervisor) logTail(after int64) string {
	f, err := os.Open(filepath.Join(s.dir, logFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	var lines []string
	reader := newLineReader(f, after)
	for {
		line, err := reader.next()
		if err != nil {
			break
		}
		lines = append(lines, line.Text)
		lines = lines[max(0, len(lines)-setupTailLines):]
	}
	lines = append(lines, s.log.tailTexts()...)
	text := strings.Join(lines[max(0, len(lines)-setupTailLines):], "\n")
	if len(text) > setupTailBytes {
		text = strings.ToValidUTF8(text[len(text)-setupTailBytes:], "")
		if _, whole, more := strings.Cut(text, "\n"); more { // the redactor would not recognize a part of a secret
			text = whole
		}
	}
	return text
}
