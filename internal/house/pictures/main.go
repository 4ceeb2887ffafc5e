// Command pictures makes the README's pictures: it plays the demo and photographs an issue's thread and
// the board with headless Chromium. `make pictures` runs it; it needs chromium in PATH.
//
// It checks nothing. Start reading at run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

func main() {
	bin := flag.String("bin", "bin", "folder of errand-demo and errand-runner")
	out := flag.String("out", "docs/images", "folder for the pictures")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	err := run(ctx, *bin, *out)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// run plays one life to its end, leaves a second task waiting for approval and a third waiting for
// the second, and photographs them.
func run(ctx context.Context, bin, out string) (err error) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return fmt.Errorf("find the browser: %w; install chromium", err)
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return fmt.Errorf("find the programs: %w", err)
	}
	dir, err := os.MkdirTemp("", "errand-pictures-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := demo.New(ctx, demo.Config{
		Dir: dir, BinDir: bin, Agent: []string{filepath.Join(bin, "errand-demo"), "simagent"}, StandIn: true, Fast: true, Log: zerolog.Nop(), Version: "demo",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	issue, err := stage(ctx, w)
	if err != nil {
		return err
	}
	board, err := withToken(w.URL)
	if err != nil {
		return err
	}
	defer board.Close()
	for _, p := range []struct {
		url, name string
		height    int
	}{
		{fmt.Sprintf("%s/%s/issues/%d", w.GitHub.BaseURL(), demo.Full, issue), "thread.png", 1640},
		{board.URL + "/status", "board.png", 800},
	} {
		if err := shoot(ctx, chromium, p.url, filepath.Join(out, p.name), p.height); err != nil {
			return err
		}
	}
	return nil
}

// stage plays until there is something to see, and returns the issue whose plan waits.
func stage(ctx context.Context, w *demo.World) (issue int, err error) {
	play := &demo.Play{World: w, Say: func(string, ...any) {}, Wait: func(string, time.Duration) {}, Patience: time.Minute}
	if _, err := play.Run(ctx); err != nil {
		return 0, err
	}
	if issue, err = play.OpenAnother(); err != nil {
		return 0, err
	}
	ada := w.GitHub.As(demo.Maintainer)
	if err := ada.Assign(demo.Full, issue, demo.Machine); err != nil {
		return 0, err
	}
	next, err := ada.OpenIssue(demo.Full, simgithub.NewIssue{Title: "Use Unique for article addresses", Body: fmt.Sprintf("Blocked by #%d.", issue)})
	if err != nil {
		return 0, err
	}
	if err := ada.Assign(demo.Full, next.Number, demo.Machine); err != nil {
		return 0, err
	}
	for {
		tasks, err := w.Server.Store().OpenTasks(ctx)
		if err != nil {
			return 0, err
		}
		ready := 0
		for _, t := range tasks {
			p := t.NewestPlan()
			if t.Phase == state.PhaseAwaitingPreliminaryApproval && p.Posted() && t.Status.Shown == t.Visible || t.Waiting != nil && t.Waiting.Kind == state.WaitBlocked {
				ready++
			}
		}
		if ready == 2 {
			return issue, nil
		}
		timer := time.NewTimer(100 * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		case <-timer.C:
		}
	}
}

// withToken serves the board to a browser that cannot log in.
func withToken(to string) (*httptest.Server, error) {
	u, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("find the board: %w", err)
	}
	return httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(u)
		r.Out.Header.Set("Authorization", "Bearer "+demo.AdminToken)
	}}), nil
}

// shoot photographs a page.
func shoot(ctx context.Context, chromium, page, file string, height int) error {
	profile, err := os.MkdirTemp("", "errand-chromium-")
	if err != nil {
		return fmt.Errorf("make a profile: %w", err)
	}
	defer func() { _ = os.RemoveAll(profile) }() // in the temporary folder; the browser may still hold files
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	args := []string{
		"--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--hide-scrollbars", "--user-data-dir=" + profile, fmt.Sprintf("--window-size=1180,%d", height), "--screenshot=" + file,
	}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	if out, err := exec.CommandContext(ctx, chromium, append(args, page)...).CombinedOutput(); err != nil {
		return fmt.Errorf("photograph %s: %w\n%s", page, err, out)
	}
	return nil
}
