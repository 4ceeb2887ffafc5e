package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// serverProcess is a webhook server in a separate process, so that its CPU time is measured apart from the client's.
type serverProcess struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// startServer starts a command that prints its address and ends when its input does.
func startServer(tb testing.TB, cmd *exec.Cmd) *serverProcess {
	tb.Helper()
	stdin, err := cmd.StdinPipe()
	check(tb, err)
	stdout, err := cmd.StdoutPipe()
	check(tb, err)
	cmd.Stderr = os.Stderr
	check(tb, cmd.Start())
	s := &serverProcess{cmd: cmd, stdin: stdin}
	tb.Cleanup(func() { _ = stdin.Close(); _ = cmd.Process.Kill() })
	addr, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		tb.Fatalf("%v did not start: %v", cmd.Args, err)
	}
	s.addr = strings.TrimSpace(addr)
	return s
}

// selfCommand returns a command that runs this test binary as another program.
func selfCommand(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	exe, err := os.Executable()
	check(tb, err)
	return exec.CommandContext(tb.Context(), exe, args...)
}

// probot is the mode of the server that uses Probot, a common framework for Apps. It stores nothing.
const probot = "Probot"

// serverCommand returns the command of the server for a mode. It skips the test if the mode needs Probot and Probot is
// not installed.
func serverCommand(tb testing.TB, mode, dir string) *exec.Cmd {
	tb.Helper()
	if mode != probot {
		return selfCommand(tb, "hookserver", mode, dir)
	}
	if reason := noProbot(); reason != "" {
		tb.Skip("skipped: " + reason)
	}
	cmd := exec.CommandContext(tb.Context(), "node", filepath.Join("probot", "server.mjs"))
	cmd.Env = append(os.Environ(), "PROBOT="+probotDir, "SECRET="+hookSecret, "NODE_ENV=production")
	return cmd
}

// probotDir is where make probot installs it.
const probotDir = "../../.cache/probot"

// noProbot returns why Probot cannot run, or "".
func noProbot() string {
	if _, err := exec.LookPath("node"); err != nil {
		return "Node.js is not installed"
	}
	if _, err := os.Stat(filepath.Join(probotDir, "node_modules", "probot")); err != nil {
		return "Probot is not installed (make probot)"
	}
	return ""
}

// stop ends the server and waits until it has closed its store.
func (s *serverProcess) stop(tb testing.TB) {
	tb.Helper()
	check(tb, s.stdin.Close())
	check(tb, s.cmd.Wait())
}

// cpu returns the CPU time that the server has used, or 0 if the kernel does not report it.
func (s *serverProcess) cpu(tb testing.TB) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 11, 12 // fields after the program's name
	var ticks int
	for _, i := range []int{user, system} {
		n, err := strconv.Atoi(fields[i])
		check(tb, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// client sends webhooks to a server for some time, from a separate process.
type client func(tb testing.TB, addr string, within time.Duration) outcome

// ownClient is the client in this test binary.
func ownClient(tb testing.TB, addr string, within time.Duration) outcome {
	tb.Helper()
	return sendSome(tb, addr, within, 1<<20)
}

// sendSome sends at most limit webhooks.
func sendSome(tb testing.TB, addr string, within time.Duration, limit int) (res outcome) {
	tb.Helper()
	cmd := selfCommand(tb, "hookload", addr, within.String(), strconv.Itoa(limit))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	check(tb, err)
	check(tb, json.Unmarshal(out, &res))
	return res
}

// wrk is the client wrk, a common load generator.
func wrk(tb testing.TB, addr string, within time.Duration) outcome {
	tb.Helper()
	body := filepath.Join(tb.TempDir(), "body")
	check(tb, os.WriteFile(body, payload(), 0o600))
	args := []string{"-t1", "-c" + strconv.Itoa(connections), fmt.Sprintf("-d%.0fs", within.Seconds()), "--latency", "-s", filepath.Join("testdata", "webhook.lua")}
	cmd := exec.CommandContext(tb.Context(), "wrk", append(args, "http://"+addr+"/api/github/hook")...)
	cmd.Env = append(os.Environ(), "ERRAND_BENCH_BODY="+body, "ERRAND_BENCH_SIGNATURE="+signature(payload()))
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("Non-2xx")) || bytes.Contains(out, []byte("Socket errors")) {
		tb.Fatalf("wrk: %v\n%s", err, out)
	}
	found := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindSubmatch(out)
		if m == nil {
			tb.Fatalf("wrk did not print %s:\n%s", pattern, out)
		}
		return string(m[1])
	}
	latency := func(percent string) time.Duration {
		d, err := time.ParseDuration(found(`(?m)^\s+` + percent + `%\s+([0-9.]+[mu]?s)\s*$`))
		check(tb, err)
		return d
	}
	answered, err := strconv.Atoi(found(`(\d+) requests in`))
	check(tb, err)
	perSecond, err := strconv.ParseFloat(found(`Requests/sec:\s+([0-9.]+)`), 64)
	check(tb, err)
	return outcome{Answered: answered, PerSecond: perSecond, P50: latency("50"), P99: latency("99")}
}
