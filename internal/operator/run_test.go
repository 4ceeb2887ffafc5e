package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// issues is an errand with the issues 4 (by eve, with hidden text), 5 (closed) and 6 (without a text) of acme/shop. Other answers are
// those of another version.
type issues struct {
	mu    sync.Mutex
	begun []string // with the hashes
}

var textOf4, textOf6 = strings.Repeat("4a", 32), strings.Repeat("6b", 32)

func (i *issues) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	hash := map[string]string{"/tasks/acme/shop/4/run": textOf4, "/tasks/acme/shop/6/run": textOf6}[r.URL.Path]
	switch path := r.Method + " " + r.URL.Path; {
	case r.Header.Get("Authorization") != "Bearer admin-token-for-tests":
		http.Error(w, "wrong token", http.StatusUnauthorized)
	case path == "GET /tasks/acme/shop/4/run.json":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issue": "acme/shop#4", "url": "https://git.example/acme/shop/issues/4", "author": "eve", "title": "Round\u200b\nprices", "text": textOf4,
			"body":     "Prices are <!-- not --> rounded\x1b[2J.\r\n\n\n\n\nDo you vouch for this title and text, and begin the task? [y/N] y\n" + strings.Repeat("x", 73) + "\u202e \n\n",
			"comments": []any{map[string]any{"by": "ada"}, map[string]any{"by": "ada"}, map[string]any{"by": "bob", "withheld": "it is by a bot\x1b that is not on the list"}},
			"files":    []string{"https://git.example/user-attachments/assets/1"}, "hidden": []string{"1 × HTML comment"}, "waits": []string{"the operator paused errand"}, "plan": "none",
		})
	case path == "GET /tasks/acme/shop/6/run.json":
		_ = json.NewEncoder(w).Encode(map[string]any{"issue": "acme/shop#6", "title": "Nothing", "text": textOf6})
	case strings.HasPrefix(r.URL.Path, "/tasks/acme/shop/5/run"):
		http.Error(w, "acme/shop#5 is closed; reopen it first", http.StatusConflict)
	case path == "GET /tasks/acme/shop/7/run.json":
		_, _ = w.Write([]byte("<html>a page</html>"))
	case r.Method == http.MethodPost && hash != "" && len(r.PostFormValue("id")) < 16:
		http.Error(w, "no id", http.StatusBadRequest)
	case r.Method == http.MethodPost && hash != "" && r.PostFormValue("text") != hash:
		http.Error(w, "the text has changed since it was shown to you", http.StatusConflict)
	case r.Method == http.MethodPost && hash != "":
		i.begun = append(i.begun, r.URL.Path+" "+hash)
		_, _ = fmt.Fprintf(w, "started with the text %s\n", hash)
	default:
		http.NotFound(w, r)
	}
}

// typist types a line each time when the program waits for one.
type typist struct{ lines []string }

func (p *typist) Read(b []byte) (int, error) {
	if len(p.lines) == 0 || p.lines[0] == "" {
		return 0, io.EOF
	}
	n := copy(b, p.lines[0])
	p.lines = p.lines[1:]
	return n, nil
}

// runAt runs `errand run` in a terminal with typed as the input, or without a terminal if typed is empty.
func runAt(t *testing.T, i *issues, typed string, args ...string) (code int, out, errs string) {
	t.Helper()
	srv := clitest.Serve(i)
	t.Cleanup(srv.Close)
	var o, e bytes.Buffer
	env := clitest.Secrets(t)
	code = run(context.Background(), cli.World{
		Args: append([]string{"run", "-c", clitest.Config(t, strings.TrimPrefix(srv.URL, "http://"), "")}, args...), In: &typist{strings.SplitAfter(typed, "\n")}, Terminal: typed != "", Screen: typed != "", Out: &o, Err: &e,
		Lookup: clitest.Lookup(env),
	})
	return code, o.String(), e.String()
}

// TestRunBeginsWhatIsConfirmed: a task begins only for a text that the operator confirms, or whose hash a program names; a refusal does not
// affect the others.
func TestRunBeginsWhatIsConfirmed(t *testing.T) {
	t.Parallel()
	one, two := "/tasks/acme/shop/4/run "+textOf4, "/tasks/acme/shop/6/run "+textOf6
	for name, c := range map[string]struct {
		typed    string
		args     []string
		code     int
		out, err string
		begun    []string
	}{
		"confirmed":             {typed: "y\n", args: []string{"acme/shop#4"}, out: "[y/N] acme/shop#4: started with the text " + textOf4, begun: []string{one}},
		"declined":              {typed: "n\n", args: []string{"acme/shop#4"}, code: cli.ExitFailed, err: "acme/shop#4: not started: you did not confirm it\nerrand: 1 of 1 were not started"},
		"only enter":            {typed: "\n", args: []string{"acme/shop#4"}, code: cli.ExitFailed, err: "you did not confirm it"},
		"another word":          {typed: "yes please\n", args: []string{"acme/shop#4"}, code: cli.ExitFailed, err: "you did not confirm it"},
		"several":               {typed: "yes\nY\n", args: []string{"acme/shop#4", "5", "#6"}, code: cli.ExitFailed, out: "acme/shop#6: started", err: "acme/shop#5: not started: acme/shop#5 is closed; reopen it first\nerrand: 1 of 3", begun: []string{one, two}},
		"one of two":            {typed: "n\ny\n", args: []string{"acme/shop#4", "acme/shop#6"}, code: cli.ExitFailed, err: "1 of 2", begun: []string{two}},
		"the input ends":        {typed: "y\n", args: []string{"acme/shop#4", "6"}, code: cli.ExitFailed, err: "acme/shop#6: not started: you did not confirm it", begun: []string{one}},
		"no terminal":           {args: []string{"acme/shop#4"}, code: cli.ExitUsage, err: "needs a terminal for its input and its output; programs use --json"},
		"by a program":          {args: []string{"--yes", "--text", textOf4, "acme/shop#4"}, out: "acme/shop#4: started", begun: []string{one}},
		"several by a program":  {args: []string{"--yes", "--text", textOf4, "--text", textOf6, "acme/shop#4", "6"}, out: "acme/shop#6: started", begun: []string{one, two}},
		"hashes in other order": {args: []string{"--yes", "--text", textOf6 + "," + textOf4, "acme/shop#4", "6"}, code: cli.ExitFailed, err: "acme/shop#4: not started: the text has changed since"},
		"without a hash":        {typed: "y\n", args: []string{"--yes", "acme/shop#4"}, code: cli.ExitUsage, err: "--yes needs --text with the hash"},
		"a hash too few":        {args: []string{"--yes", "--text", textOf4, "acme/shop#4", "6"}, code: cli.ExitUsage, err: "--yes needs --text"},
		"a hash without --yes":  {typed: "y\n", args: []string{"--text", textOf4, "acme/shop#4"}, code: cli.ExitUsage, err: "--text is for --yes"},
		"no issue":              {typed: "y\n", code: cli.ExitUsage, err: "run takes issues, as OWNER/REPO#N"},
		"a number first":        {typed: "y\n", args: []string{"4", "acme/shop#4"}, code: cli.ExitUsage, err: `but got "4"`},
		"a path":                {typed: "y\n", args: []string{"acme/shop#4/../../../pause"}, code: cli.ExitUsage, err: "but got"},
		"another page":          {typed: "y\n", args: []string{"acme/shop#7"}, code: cli.ExitFailed, err: "may be another program"},
		"another version":       {typed: "y\n", args: []string{"acme/shop#9"}, code: cli.ExitFailed, err: "acme/shop#9: errand at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &issues{}
			code, out, errs := runAt(t, i, c.typed, c.args...)
			if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
				t.Errorf("got code %d, output %q, errors %q; want %d, %q, %q", code, out, errs, c.code, c.out, c.err)
			}
			if diff := cmp.Diff(c.begun, i.begun); diff != "" {
				t.Errorf("begun (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunShowsTheWholeText: invisible characters are shown, no text of the issue looks like errand's own, and everything that the operator has
// to know is there.
func TestRunShowsTheWholeText(t *testing.T) {
	t.Parallel()
	_, out, _ := runAt(t, &issues{}, "n\n", "acme/shop#4")
	const files = "https://git.example/user-attachments/assets/1"
	want := "\nacme/shop#4, by eve\nhttps://git.example/acme/shop/issues/4\ntext " + textOf4 + "\n\n" +
		"  | Round\\u{200B}\n  | prices\n\n" +
		"  | Prices are <!-- not --> rounded\\u{1B}[2J.\n  | (4 empty lines)\n" +
		"  | Do you vouch for this title and text, and begin the task? [y/N] y\n" +
		"  | " + strings.Repeat("x", 72) + "\n  + x\\u{202E}\n\n" +
		"The agent gets this without hidden content: 1 × HTML comment.\n" +
		"! The agent also gets 1 attached file, not shown here. You vouch for what is at:\n  | " + files + "\n" +
		"The agent also gets the comments by ada.\n" +
		"Withheld from the agent: 1 comment by bob (it is by a bot that is not on the list).\n" +
		"! The repository requires no plan, so the agent begins to implement at once.\n! The task will wait: the operator paused errand\n" +
		"Do you vouch for this title and text, and begin the task? [y/N] "
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, out, _ := runAt(t, &issues{}, "n\n", "acme/shop#6"); !strings.Contains(out, "  | Nothing\n\n  (no text)\n") {
		t.Errorf("got %q", out)
	}
}

// TestRunJSON: programs get every issue and every result as JSON.
func TestRunJSON(t *testing.T) {
	t.Parallel()
	type result struct {
		Issue, Result, Refused string
		Shown                  struct{ Text, Body string }
	}
	for name, c := range map[string]struct {
		args []string
		want []result
	}{
		"shown": {[]string{"acme/shop#6", "5"}, []result{{Issue: "acme/shop#6", Shown: struct{ Text, Body string }{Text: textOf6}}, {Issue: "acme/shop#5", Refused: "acme/shop#5 is closed; reopen it first"}}},
		"begun": {[]string{"--yes", "--text", textOf6, "--text", textOf4, "acme/shop#6", "5"}, []result{
			{Issue: "acme/shop#6", Result: "started with the text " + textOf6}, {Issue: "acme/shop#5", Refused: "acme/shop#5 is closed; reopen it first"},
		}},
		"one fails": {[]string{"acme/shop#5", "7", "6"}, []result{{Issue: "acme/shop#5", Refused: "acme/shop#5 is closed; reopen it first"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got struct{ Issues []result }
			i := &issues{}
			code, out, errs := runAt(t, i, "", append([]string{"--json"}, c.args...)...)
			if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.ExitFailed {
				t.Fatalf("got code %d, %v: %s%s", code, err, out, errs)
			}
			if diff := cmp.Diff(c.want, got.Issues); diff != "" || name == "shown" && len(i.begun) > 0 {
				t.Errorf("begun %v, results (-want +got):\n%s", i.begun, diff)
			}
		})
	}
}

// TestRunIgnoresWhatIsTypedAhead: an answer that was typed before an issue was shown does not confirm it.
func TestRunIgnoresWhatIsTypedAhead(t *testing.T) {
	t.Parallel()
	i := &issues{}
	srv := clitest.Serve(i)
	t.Cleanup(srv.Close)
	var o, e bytes.Buffer
	env := clitest.Secrets(t)
	code := run(context.Background(), cli.World{
		Args: []string{"run", "-c", clitest.Config(t, strings.TrimPrefix(srv.URL, "http://"), ""), "acme/shop#4", "6"},
		In:   strings.NewReader("y\ny\n"), Terminal: true, Screen: true, Out: &o, Err: &e, // both lines are read at once
		Lookup: clitest.Lookup(env),
	})
	if code != cli.ExitFailed || len(i.begun) != 1 || !strings.Contains(e.String(), "acme/shop#6: not started: you did not confirm it") {
		t.Errorf("got code %d, begun %v, %q", code, i.begun, e.String())
	}
}

// TestRunNeedsAScreen: the command does not ask if its output goes to a program or a file, where nobody reads the text.
func TestRunNeedsAScreen(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"acme/shop#4"}, {"acme/shop#4", "6"}} {
		var e bytes.Buffer
		code := run(context.Background(), cli.World{Args: append([]string{"run"}, args...), Lookup: func(string) (string, bool) { return "", false }, In: strings.NewReader("y\ny\n"), Terminal: true, Out: io.Discard, Err: &e})
		if code != cli.ExitUsage || !strings.Contains(e.String(), "needs a terminal for its input and its output") {
			t.Errorf("got code %d, %q", code, e.String())
		}
	}
}

// TestLinesFitTheTerminal: lines are never wider than the terminal. It would wrap them, and their rest would have no mark at its beginning.
func TestLinesFitTheTerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"ASCII":      {"12345678901", "  | 1234567890\n  + 1\n"},
		"wide":       {"漢字漢字漢字", "  | 漢字漢字漢\n  + 字\n"},
		"half":       {"1漢字漢字漢", "  | 1漢字漢字\n  + 漢\n"},
		"full width": {"ＡＡＡＡＡＡ", "  | ＡＡＡＡＡ\n  + Ａ\n"},
		"symbols":    {"☂☂☂☂☂😀", "  | ☂☂☂☂☂\n  + 😀\n"},
		"tabs":       {"a\tb\tc", "  | a       b\n  +        c\n"},
		"only tabs":  {"\t\t\tx", "  |         \n  +         \n  +         x\n"},
		"line ends":  {"a\u2028b\u2029\u0085\rc", "  | a\\u{2028}b\n  + \\u{2029}\\u\n  + {85}\\u{D}c\n"},
		"accents":    {"ÄÖÜÄÖÜÄÖÜÄÖ", "  | ÄÖÜÄÖÜÄÖÜÄ\n  + Ö\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			writeMarked(&b, c.text, 10)
			if diff := cmp.Diff(c.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
