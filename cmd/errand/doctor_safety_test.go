package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/doctor"
)

// TestDoctorFixesOnlyOwnFiles: --fix takes access to errand's own files away, and to nothing else that the configuration names.
func TestDoctorFixesOnlyOwnFiles(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for name, row := range map[string]struct {
		plant func(c *clinic, other string) error // makes the file of the key another file
		want  os.FileMode
	}{
		"own":           {plant: func(c *clinic, other string) error { return os.Rename(other, c.path("model")) }, want: 0o600},
		"symbolic link": {plant: func(c *clinic, other string) error { return os.Symlink(other, c.path("model")) }, want: 0o644},
		"hard link":     {plant: func(c *clinic, other string) error { return os.Link(other, c.path("model")) }, want: 0o644},
		"of root, who does not run errand": {plant: func(c *clinic, other string) error {
			if os.Geteuid() != 0 {
				c.t.Skip("only root can give files away")
			}
			if err := os.MkdirAll(c.path("data"), 0o700); err != nil {
				return err
			}
			if err := os.Chown(c.path("data"), 65534, -1); err != nil {
				return err
			}
			return os.Rename(other, c.path("model"))
		}, want: 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, bin)
			c.write("other", "model-key-for-tests", 0o644)
			if err := os.Remove(c.path("model")); err != nil {
				t.Fatal(err)
			}
			if err := row.plant(c, c.path("other")); err != nil {
				t.Fatal(err)
			}
			_, r := c.doctor("--fix")
			info, err := os.Stat(c.path("model"))
			if err != nil || info.Mode().Perm() != row.want {
				t.Errorf("got mode %v and %v", info.Mode(), err)
			}
			for _, f := range r.Findings {
				if f.Check == "host.secrets" && (f.Status == doctor.OK) != (row.want == 0o600) {
					t.Errorf("got %+v", f)
				}
			}
		})
	}
}

// TestDoctorDistrustsTheAddress: what answers at errand's address can be another program. It can neither make --fix change files nor
// control the terminal, nor pass as errand, and gets no token.
func TestDoctorDistrustsTheAddress(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for name, text := range map[string]string{
		"a page":          "<html>\x1b[2J</html>" + strings.Repeat("x", 5000),
		"an empty report": "{}",
		"a report":        "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, bin)
			c.write("other", "x", 0o644)
			if text == "" {
				evil, err := json.Marshal(doctor.Report{Version: "v1\x1b[2J", Serving: true, Findings: []doctor.Finding{{
					Check: "host.secrets", Status: doctor.Failed, Found: "\x1b]0;x\x07\u009b2J", Chmod: &doctor.Chmod{Path: c.path("other"), Mode: 0o777},
				}}})
				if err != nil {
					t.Fatal(err)
				}
				text = string(evil)
			}
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if sent := r.Header.Get("Authorization"); sent != "" {
					t.Errorf("another program got %q", sent)
				}
				_, _ = w.Write([]byte(text))
			}))
			t.Cleanup(other.Close)
			c.config["listen"] = strings.TrimPrefix(other.URL, "http://")
			for _, args := range [][]string{nil, {"--json"}} {
				code, out, errs := callIn(t, c.bin, nil, append([]string{"doctor", "--fix", "-c", c.file()}, args...)...)
				if code != cli.ExitFailed || strings.ContainsAny(out+errs, "\x1b\u009b\a") || strings.Contains(out, "u001b") || strings.Contains(out, strings.Repeat("x", 1500)) {
					t.Errorf("code %d, output %q", code, out+errs)
				}
				if !strings.Contains(out, "no errand runs on the data folder") {
					t.Errorf("got\n%s", out)
				}
			}
			if info, err := os.Stat(c.path("other")); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("--fix changed another file: %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestDoctorOfRelativeFolder: where data is relative and another directory than errand's is the working directory, errand is not said to be
// broken, nor another program to use its address; the folder is named in full, and no token is sent.
func TestDoctorOfRelativeFolder(t *testing.T) {
	bin := build(t)
	c := newClinic(t, bin)
	serving := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if sent := r.Header.Get("Authorization"); sent != "" {
			t.Errorf("a program on another folder got %q", sent)
		}
	}))
	t.Cleanup(serving.Close)
	c.config["listen"], c.config["data"] = strings.TrimPrefix(serving.URL, "http://"), "errand-data"
	elsewhere := t.TempDir()
	t.Chdir(elsewhere)
	for _, plant := range []string{"", "errand-data/errand.db"} { // the store of another errand, which does not run
		if plant != "" {
			if err := errors.Join(os.Mkdir("errand-data", 0o700), os.WriteFile(plant, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		_, r := c.doctor()
		f := r.Findings[0]
		if f.Check != "serve" || !strings.Contains(f.Found, filepath.Join(elsewhere, "errand-data")) || !strings.Contains(f.Meaning, "data is relative") ||
			!strings.HasPrefix(f.Fix, "Run this in errand's working directory, or make `data` an absolute path in "+c.file()) || strings.Contains(f.Fix, "systemctl") {
			t.Errorf("with %q: got %+v", plant, f)
		}
	}
}

// TestDoctorKeepsTheProgramsApart: an agent's program gets none of errand's environment, its output is bounded, and nothing of it stays.
func TestDoctorKeepsTheProgramsApart(t *testing.T) {
	t.Setenv("ERRAND_ADMIN_TOKEN", "secret-of-the-environment")
	bin := build(t)
	c := newClinic(t, bin)
	c.write("bin/claude", "#!/bin/sh\nsleep 1000 >/dev/null 2>&1 &\necho $! >"+c.path("child")+"\nprintf '2.1\\033[2J %s %s\\n' \"$ERRAND_ADMIN_TOKEN\" \"$HOME\"\nhead -c 9000000 /dev/zero\n", 0o755)
	_, r := c.doctor()
	for _, f := range r.Findings {
		if f.Check != "agent.claude" {
			continue
		}
		if f.Status != doctor.OK || !strings.Contains(f.Found, "2.1[2J") || strings.Contains(f.Found, "secret-of") {
			t.Errorf("got %+v", f)
		}
		_, home, _ := strings.Cut(f.Found, " /tmp")
		if _, err := os.Stat("/tmp" + home); home != "" && err == nil {
			t.Errorf("%s is still there", home)
		}
	}
	child, err := os.ReadFile(c.path("child"))
	if err != nil {
		t.Fatal(err)
	}
	proc := "/proc/" + strings.TrimSpace(string(child)) + "/stat"
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second) // a busy host takes a while to end a process that was killed
	defer stop()
	for {
		state, err := os.ReadFile(proc)
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		if clock.Sleep(ctx, 10*time.Millisecond) != nil {
			t.Fatalf("a process was left: %s", state)
		}
	}
}

// TestDoctorIsInterrupted: Ctrl-C ends the checks without a report, because unfinished checks would be reported as problems.
func TestDoctorIsInterrupted(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	c.write("bin/claude", "#!/bin/sh\ntouch "+c.path("started")+"\nsleep 1000\n", 0o755)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(c.path("started")); err == nil {
				stop()
			}
			runtime.Gosched()
		}
	}()
	var out, errs bytes.Buffer
	w := cli.World{Out: &out, Err: &errs, BinDir: c.bin, Lookup: func(string) (string, bool) { return "", false }}
	err := examination{path: c.file()}.run(ctx, w)
	if err == nil || !strings.Contains(err.Error(), "interrupted") || out.Len() > 0 {
		t.Errorf("got %v and %q", err, out.String())
	}
}

// TestDoctorNamesErrandsUser: if somebody else may not read the configuration, the advice names the user to whom it, or the folder around it, belongs.
func TestDoctorNamesErrandsUser(t *testing.T) {
	t.Parallel()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir: me.Username, filepath.Join(dir, "hidden", "config.yml"): me.Username, "/none/such": "root",
	} {
		if got := accountOf(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
