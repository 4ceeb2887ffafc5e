package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/e2e/stage"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// timing is the section of the configuration: short, and without sweeps, so that stories do not depend on them
// unintentionally.
func timing() map[string]string {
	return map[string]string{"gather": "250ms", "poll_fast": "150ms", "poll_slow": "300ms", "deliveries": "1h", "sweep": "1h", "shutdown": "5s", "idle_vm": "1h"}
}

// quick is the timing without configuration keys.
func quick() *server.Timing {
	t := server.DefaultTiming()
	t.GatherTalk, t.GatherMax = 150*time.Millisecond, time.Second
	t.StatusGap, t.Settle, t.Backoff, t.Recheck = 150*time.Millisecond, 0, 300*time.Millisecond, 300*time.Millisecond
	t.PollGap, t.ProgressEvery, t.JobRetry, t.ChecksQuiet = 80*time.Millisecond, 100*time.Millisecond, 150*time.Millisecond, 100*time.Millisecond
	t.WritesBurst, t.WritesEvery, t.ObjectsEvery = 500, 2*time.Millisecond, time.Millisecond
	return &t
}

// world starts the simulators and errand: world [KEY=VALUE …] sets timings (keys of the configuration's section, and
// fields of server.Timing as stage.SetTiming names them), kind=, subscription=, agent=codex (default: Claude Code),
// internet=registry (servers that VMs can reach through errand), webhooks=poll (GitHub cannot reach errand) and account=N[:HOURS] (VMs
// are servers of the Hetzner simulator, whose account may have N, and a task may use HOURS of them). The files repo/… are the first commit, errand.yml its
// settings, config.yml additional configuration of the operator, agent.yml additions to its section agent, model.yaml
// rules of the model before the usual ones.
func world(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	times, pace, kind, paid, extra, account, options := timing(), quick(), "plain", "", "", "", s.hostile.options
	unreachable := false
	standIn, adapter, model := "simagent", "claude", "claude-sonnet-5"
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "kind":
			kind = v
		case "subscription":
			paid = v
		case "account":
			account = v
		case "webhooks":
			if v != "poll" {
				ts.Fatalf("unknown way of webhooks %q", v)
			}
			unreachable = true
		case "agent":
			if v != "codex" {
				ts.Fatalf("unknown agent %q", v)
			}
			standIn, adapter, model = "simcodex", "codex", "gpt-5.5"
		case "errors":
			s.quiet = v == "expected"
		case "internet":
			beyond := internet(ts)
			before := options
			options = func(o *server.Options) {
				before(o)
				o.Hooks.Internet = beyond
			}
		default:
			if _, ok := times[k]; ok {
				times[k] = v
				continue
			}
			ok, err := stage.SetTiming(pace, k, v)
			ts.Check(err)
			if !ok {
				ts.Fatalf("unknown argument %q", a)
			}
		}
	}
	extra = "timing:\n"
	for _, k := range sortedKeys(times) {
		extra += "  " + k + ": " + times[k] + "\n"
	}
	more, err := optional(ts.MkAbs("config.yml"))
	ts.Check(err)
	agent, err := optional(ts.MkAbs("agent.yml"))
	ts.Check(err)
	rules, err := modelRules(ts.MkAbs("model.yaml"))
	ts.Check(err)
	files, err := repoFiles(ts.MkAbs("."))
	ts.Check(err)
	ts.Check(os.MkdirAll(s.dir, 0o700))
	s.log, err = os.Create(filepath.Join(s.dir, "errand.log"))
	ts.Check(err)
	cfg := demo.Config{
		Dir: s.dir, BinDir: common.Bin, Agent: common.Agent(standIn), Adapter: adapter, Model: model, StandIn: true, Kind: kind, Subscription: paid, Script: rules, Extra: extra + more, Timing: pace, AgentMore: agent,
		Unreachable: unreachable, Files: files, Key: rsatest.Key(), Log: zerolog.New(s.log).With().Timestamp().Logger(), Version: "e2e", Options: options,
	}
	if account != "" {
		useCloud(ts, &cfg, account)
	}
	s.w, err = demo.New(context.Background(), cfg)
	ts.Check(err)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// optional reads a file that may be missing.
func optional(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// modelRules returns the story's rules followed by the usual ones.
func modelRules(path string) (string, error) {
	own, err := optional(path)
	if err != nil {
		return "", err
	}
	usual, err := os.ReadFile("testdata/model.yaml")
	if err != nil {
		return "", err
	}
	if own == "" {
		return string(usual), nil
	}
	return strings.TrimRight(own, "\n") + "\n" + strings.TrimPrefix(string(usual), "rules:\n"), nil
}

// repoFiles returns the files of the repository's first commit.
func repoFiles(dir string) (map[string]string, error) {
	files := map[string]string{"README.md": "# greeting\n", "greeting.txt": "hello\n", "docs/notes.md": "one\ntwo\nthree\n"}
	root := filepath.Join(dir, "repo")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	settings, err := optional(filepath.Join(dir, "errand.yml"))
	if settings != "" {
		files[".errand.yml"] = settings
	}
	return files, err
}

// serverCmd is server stop|start|child|kill: stop ends errand gracefully, child runs it as a separate process, kill
// ends that one with SIGKILL.
func serverCmd(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	if len(args) != 1 {
		ts.Fatalf("usage: server stop|start|child|kill|rotate")
	}
	switch args[0] {
	case "stop":
		ts.Check(s.w.Stop())
	case "start":
		ts.Check(s.w.Start(context.Background()))
	case "child":
		ts.Check(s.w.Stop())
		var err error
		s.child, err = startChild(s)
		ts.Check(err)
	case "rotate": // the tether key
		ts.Check(keyfile.Replace(filepath.Join(s.dir, "data", server.TetherKeyFile)))
	case "rotate-provenance":
		_, err := keyfile.RotateSigning(filepath.Join(s.dir, "data", server.ProvenanceKeyFile), time.Now())
		ts.Check(err)
	case "kill":
		ts.Check(s.child.kill())
		s.child = nil
	default:
		ts.Fatalf("unknown argument %q", args[0])
	}
}

// child is errand as a separate process.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// startChild starts errand and waits until it is ready. If it ends before that, as when another program of this host has got its port for a
// moment, it is started again, as systemd does.
func startChild(s *story) (*child, error) {
	var c *child
	poll := &http.Client{Transport: webtest.Transport(), Timeout: 10 * time.Second}
	for end := time.Now().Add(patience); time.Now().Before(end); pause() {
		if c == nil || c.hasEnded() {
			var err error
			if c, err = runChild(s); err != nil {
				return nil, err
			}
		}
		resp, err := poll.Get(s.w.URL + "/readyz")
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return c, nil
		}
	}
	return nil, errors.Join(errors.New("errand did not become ready"), c.kill())
}

func runChild(s *story) (*child, error) {
	cmd, err := stage.Child(s.w.ConfigFile(), strings.TrimPrefix(s.w.URL, "http://"), common.Bin, s.log.Name(), s.w.Timing())
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the error reports the kill
		close(c.ended)
	}()
	return c, nil
}

func (c *child) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// kill is kill -9.
func (c *child) kill() error {
	err := c.cmd.Process.Kill()
	<-c.ended
	return err
}

// pause waits between two checks of a condition.
func pause() {
	timer := time.NewTimer(25 * time.Millisecond)
	<-timer.C
}

// tasks lists all tasks, while the server is in this process.
func (s *story) tasks() []*state.Task {
	if s.w == nil || s.w.Server == nil || s.child != nil {
		return nil
	}
	list, err := s.w.Server.Store().AllTasks(context.Background(), state.TaskKey{}, 100)
	if err != nil {
		return nil
	}
	return list
}

func (s *story) jobs(k state.TaskKey) []state.Job {
	jobs, err := s.w.Server.Store().Jobs(context.Background(), k)
	if err != nil {
		return nil
	}
	return jobs
}

// repo returns the current repository.
func (s *story) repo() *simgithub.Repo {
	sn := s.w.GitHub.Snapshot()
	r, ok := sn.Repo(s.full)
	if !ok {
		panic("the story's repository is gone")
	}
	return r
}

// task returns the task of an issue in the story's repository, or nil.
func (s *story) task(issue int) *state.Task {
	repo := s.repo().ID
	for _, t := range s.tasks() {
		if t.Key == (state.TaskKey{Repo: repo, Issue: issue}) {
			return t
		}
	}
	return nil
}

func numbers(r *simgithub.Repo) []int {
	var list []int
	for n := range r.Issues {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// release opens gates of the model.
func release(ts *testscript.TestScript, neg bool, args []string) {
	for _, gate := range args {
		of(ts).w.Model.Release(gate)
	}
}

// scriptCmd replaces the model's rules: script FILE.
func scriptCmd(ts *testscript.TestScript, neg bool, args []string) {
	text, err := modelRules(ts.MkAbs(args[0]))
	ts.Check(err)
	script, err := simmodel.ParseScript([]byte(text))
	ts.Check(err)
	ts.Check(of(ts).w.Model.SetScript(script))
}

// keyCmd is key revoke|renew: the model's provider rejects errand's key, or accepts it again. With a subscription it is
// key expire|logout|login: the token expires at once, the login ends, or errand gets a new one.
func keyCmd(ts *testscript.TestScript, neg bool, args []string) {
	switch w := of(ts).w; strings.Join(args, " ") {
	case "expire":
		w.Model.EndToken()
		return
	case "logout":
		w.Model.EndLogin()
		return
	case "login":
		ts.Check(w.LogIn())
		return
	}
	key := map[string]string{"revoke": "another", "renew": demo.ModelKey}[strings.Join(args, " ")]
	if key == "" {
		ts.Fatalf("usage: key revoke|renew|expire|logout|login")
	}
	of(ts).w.Model.SetKey(key)
}

// boxCmd is box kill: it kills all processes of the task's VM.
func boxCmd(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	t := s.task(s.issue)
	if t == nil || t.VM == nil {
		ts.Fatalf("the task has no VM")
	}
	ts.Check(killBox(s.boxDir(t.VM.Name)))
}

func (s *story) boxDir(name string) string {
	return filepath.Join(s.dir, "data", "local", "boxes", name)
}

// killBox kills every process that works in a sandbox's directory, including its supervisor.
func killBox(dir string) error {
	out, err := exec.Command("sh", "-c", fmt.Sprintf(`for p in /proc/[0-9]*; do
	  if tr '\0' '\n' 2>/dev/null <"$p/cmdline" | grep -qF -e %[1]q || readlink "$p/cwd" 2>/dev/null | grep -qF -e %[1]q; then echo "${p#/proc/}"; fi
	done`, dir)).Output()
	if err != nil {
		return fmt.Errorf("find the sandbox's processes: %w", err)
	}
	pids := strings.Fields(string(out))
	if len(pids) == 0 {
		return fmt.Errorf("found no process of sandbox %s", dir)
	}
	// Some may have ended, such as the searching shell.
	_ = exec.Command("kill", append([]string{"-9"}, pids...)...).Run()
	return nil
}
