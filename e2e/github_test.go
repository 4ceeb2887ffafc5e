package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/uuid"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
)

// hooks disturbs webhooks: hooks hold | release [reversed] | duplicate N | fail [EVENT] | lose [EVENT] | too-large
// [EVENT] | forge | wait | clear | again (redeliver all that were delivered) | post BYTES (a signed one of that size;
// prints the answer's status).
func hooks(ts *testscript.TestScript, neg bool, args []string) {
	g := of(ts).w.GitHub
	event, n := "", 0
	if len(args) > 1 {
		event = args[1]
		n, _ = strconv.Atoi(args[1]) // 0 unless it is a number
	}
	switch args[0] {
	case "hold":
		g.HoldHooks()
	case "release":
		g.ReleaseHooks(event == "reversed")
	case "duplicate":
		g.FaultHooks(delivery.Fault{Copies: n - 1})
	case "fail":
		g.FaultHooks(delivery.Fault{Event: event, Fail: true})
	case "lose":
		g.FaultHooks(delivery.Fault{Event: event, Lose: true})
	case "too-large":
		g.FaultHooks(delivery.Fault{Event: event, Large: true})
	case "forge":
		g.FaultHooks(delivery.Fault{BadSignature: true})
	case "wait":
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ts.Check(g.WaitHooks(ctx))
	case "clear":
		g.ClearFaults()
	case "again":
		done := map[string]bool{}
		for _, d := range g.Deliveries() {
			if !done[d.GUID] {
				done[d.GUID] = true
				g.Redeliver(d.ID)
			}
		}
	case "post":
		postHook(ts, n)
	default:
		ts.Fatalf("unknown argument %q", args[0])
	}
}

// postHook sends a ping of a size, signed as GitHub would.
func postHook(ts *testscript.TestScript, size int) {
	s := of(ts)
	body := append(append([]byte(`{"zen":"`), bytes.Repeat([]byte("x"), size)...), `"}`...)
	mac := hmac.New(sha256.New, []byte(s.w.GitHub.App().WebhookSecret))
	mac.Write(body)
	req, err := http.NewRequest(http.MethodPost, s.w.URL+"/api/github/hook", bytes.NewReader(body))
	ts.Check(err)
	for k, v := range map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": uuid.NewString(),
		"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		req.Header.Set(k, v)
	}
	resp, err := webtest.Client().Do(req)
	ts.Check(err)
	ts.Check(resp.Body.Close())
	fmt.Fprintln(ts.Stdout(), resp.StatusCode)
}

// fault makes errand's requests fail: fault METHOD PATH KIND [COUNT] [NTH] [OPTION …]. The kind is a status, cut (the
// connection ends before the effect), lost (after the effect), hang, primary or secondary (limits); options are
// status=N, retry-after=S, reset=S, location=URL, and after, for an answer after the effect. COUNT 0 means until "hooks clear". "fault
// lag DURATION" omits younger objects from lists.
func fault(ts *testscript.TestScript, neg bool, args []string) {
	g := of(ts).w.GitHub
	if args[0] == "lag" {
		d, err := time.ParseDuration(args[1])
		ts.Check(err)
		g.SetListLag(d)
		return
	}
	f := simgithub.Fault{Method: args[0], Path: args[1], Actor: "app", Count: 1}
	if strings.HasPrefix(f.Path, "/storage/") || strings.HasPrefix(f.Path, "/_actions/") { // an upload or a log, which errand reads without a token
		f.Actor = "user"
	}
	switch args[2] {
	case "cut":
		f.Cut = true
	case "lost":
		f.Cut, f.After = true, true
	case "hang":
		f.Hang = true
	case "primary":
		f.Primary = true
	case "secondary":
		f.Secondary = true
	default:
		status, err := strconv.Atoi(args[2])
		ts.Check(err)
		f.Status = status
	}
	numbers := []*int{&f.Count, &f.Nth}
	options := map[string]*int{"status": &f.Status, "retry-after": &f.RetryAfter, "reset": &f.Reset}
	for _, arg := range args[3:] {
		k, v, named := strings.Cut(arg, "=")
		if arg == "after" {
			f.After = true
			continue
		}
		if k == "location" {
			f.Header = map[string]string{"Location": v}
			continue
		}
		at, text := options[k], v
		if !named && len(numbers) > 0 {
			at, text, numbers = numbers[0], arg, numbers[1:]
		}
		if at == nil {
			ts.Fatalf("unknown argument %q", arg)
		}
		n, err := strconv.Atoi(text)
		ts.Check(err)
		*at = n
	}
	ts.Check(g.Fault(f))
}

// repoCmd is repo privatize | publicize | rename NAME | transfer OWNER [without-app] | add NAME | add-uninstalled NAME |
// use NAME | remove | restore | uninstall | install | suspend | unsuspend | grant NAME=LEVEL … |
// expire-tokens | one of the rules of ruleCmd.
func repoCmd(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	g := s.w.GitHub
	switch args[0] {
	case "remove":
		ts.Check(g.RemoveFromInstallation(s.full))
	case "install", "restore":
		_, err := g.Install(s.full)
		ts.Check(err)
	case "uninstall":
		g.Uninstall(demo.Owner)
	case "privatize", "publicize":
		ts.Check(g.SetPrivate(s.full, args[0] == "privatize"))
	case "rename":
		ts.Check(g.RenameRepo(s.full, args[1]))
		s.full = demo.Owner + "/" + args[1]
	case "transfer":
		ts.Check(g.TransferRepo(s.full, args[1], len(args) < 3))
		_, name, _ := strings.Cut(s.full, "/")
		s.full = args[1] + "/" + name
	case "add", "add-private", "add-uninstalled": // the App is installed on a private one
		files := map[string]string{"README.md": "# other\n"}
		if len(args) > 3 { // another file with the content of a file in the script
			files[args[2]] = ts.ReadFile(args[3])
		}
		private := args[0] == "add-private"
		r, err := g.SeedRepo(simgithub.RepoSeed{
			Owner: demo.Owner, Name: args[1], Private: private, NotInstalled: args[0] == "add-uninstalled", Files: files,
			Collaborators: s.repo().Collaborators,
		})
		ts.Check(err)
		if private {
			_, err = g.Install(r.FullName())
			ts.Check(err)
		}
	case "use":
		s.full = demo.Owner + "/" + args[1]
	case "suspend", "unsuspend":
		g.Suspend(demo.Owner, args[0] == "suspend")
	case "grant":
		perms := g.App().Permissions
		for _, arg := range args[1:] {
			name, level, _ := strings.Cut(arg, "=")
			perms[name] = level
		}
		g.GrantPermissions(demo.Owner, perms)
	case "expire-tokens":
		g.ExpireTokens()
	default:
		ruleCmd(ts, args)
	}
}

// openPulls compares the number of errand's open pull requests.
func openPulls(o seen, want string) (string, bool) {
	n := 0
	for _, i := range o.r.Issues {
		if i.Pull != nil && i.State == "open" && i.Author == o.s.w.GitHub.App().BotLogin {
			n++
		}
	}
	return count(n, want)
}
