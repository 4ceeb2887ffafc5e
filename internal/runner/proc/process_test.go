package proc

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// isolations returns the kinds that work on this host. A subreaper cannot distinguish two commands of one program, so
// these tests are not parallel.
func isolations(t *testing.T) []Isolation {
	t.Helper()
	if runtime.GOOS != "linux" {
		return []Isolation{Group}
	}
	all := []Isolation{Subreaper, Group}
	if Probe() == PIDNamespace {
		return append(all, PIDNamespace)
	}
	t.Log("no PID namespace can be had here; tested without")
	return all
}

// startScript starts a shell script with a pipe for its output.
func startScript(t *testing.T, isolation Isolation, script string) (*Process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	p, err := Start(Command{
		Argv: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "A=b"}, Dir: t.TempDir(),
		Stdout: w, Stderr: w,
	}, isolation)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); p.Wait() })
	return p, r
}

func TestProcess(t *testing.T) {
	tests := map[string]struct {
		script string
		output string
		exit   Exit
	}{
		"code":        {"echo $A; exit 5", "b\n", Exit{Code: 5}},
		"signal":      {"kill -TERM $$", "", Exit{Code: 143, Signal: "terminated"}},
		"no input":    {"cat; echo end", "end\n", Exit{}},
		"orphans":     {"for i in 1 2 3; do (setsid sleep 1000 &) ; done; echo end", "end\n", Exit{}},
		"broken pipe": {"yes | head -1", "y\n", Exit{}},
		"its own id":  {`test -d /proc/$$ -o ! -d /proc/self && echo yes`, "yes\n", Exit{}},
	}
	for _, isolation := range isolations(t) {
		for name, test := range tests {
			if isolation == Group && name == "orphans" {
				continue // that is what Group cannot do
			}
			t.Run(string(isolation)+"/"+name, func(t *testing.T) {
				p, output := startScript(t, isolation, test.script)
				if exit := p.Wait(); exit != test.exit {
					t.Errorf("exit %+v, want %+v", exit, test.exit)
				}
				// The output only ends when no process has the pipe open.
				_ = output.SetReadDeadline(time.Now().Add(time.Minute))
				if got, err := io.ReadAll(output); err != nil || string(got) != test.output {
					t.Errorf("output %q, %v", got, err)
				}
			})
		}
	}
}

func TestInterruptReachesTheCommandOnly(t *testing.T) {
	for _, isolation := range isolations(t) {
		t.Run(string(isolation), func(t *testing.T) {
			p, output := startScript(t, isolation, `
				trap 'echo interrupted; exit 4' INT
				sh -c 'trap "echo child interrupted" INT; echo ready; while :; do sleep 0.01; done' &
				while :; do sleep 0.01; done`)
			read := make([]byte, 6)
			if _, err := io.ReadFull(output, read); err != nil {
				t.Fatal(err)
			}
			p.Interrupt()
			if exit := p.Wait(); exit.Code != 4 {
				t.Errorf("exit %+v", exit)
			}
			rest, err := io.ReadAll(output)
			if err != nil || strings.Contains(string(rest), "child") {
				t.Errorf("output %q, %v", rest, err)
			}
			p.Interrupt() // of an ended command: nothing
			p.Kill()
		})
	}
}

func TestNotStarted(t *testing.T) {
	for _, isolation := range isolations(t) {
		for name, argv := range map[string][]string{"missing": {"no-such-command"}, "nothing": nil} {
			_, err := Start(Command{Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}, isolation)
			if !errors.Is(err, ErrNotStarted) {
				t.Errorf("%s, %s: error %v", isolation, name, err)
			}
		}
	}
}

func TestCPU(t *testing.T) {
	for _, isolation := range isolations(t) {
		if isolation == Group && runtime.GOOS != "linux" {
			continue
		}
		t.Run(string(isolation), func(t *testing.T) {
			p, _ := startScript(t, isolation, "sh -c 'while :; do :; done'")
			deadline := time.Now().Add(time.Minute)
			ticker := time.NewTicker(20 * time.Millisecond)
			defer ticker.Stop()
			for ; ; <-ticker.C {
				if used, known := p.CPU(); known && used > 50*time.Millisecond {
					return
				}
				if time.Now().After(deadline) {
					t.Fatal("the use of a descendant is not seen")
				}
			}
		})
	}
}
