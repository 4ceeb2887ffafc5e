package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/buildtest"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/rsatest"
)

// operator does what `errand cancel` and the like do: operator N VERB [ARGS]. It prints the answer. `errand pause` and `errand resume`
// are operator pause|resume all|each|.|OWNER/REPO [REASON]: each also resumes repositories, and . is the story's.
func operator(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	if args[0] == "pause" || args[0] == "resume" {
		operatorPause(ts, neg, args)
		return
	}
	n, err := s.number(args[0])
	ts.Check(err)
	form := url.Values{"args": {strings.Join(args[2:], " ")}, "id": {rand.Text()}}
	if args[1] == "destroy" {
		form["force"] = args[2:]
	}
	status, body, err := s.post(fmt.Sprintf("/tasks/%s/%d/actions/%s", s.full, n, args[1]), form)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
	if (status == http.StatusOK) == neg {
		ts.Fatalf("%v: %d %s", args, status, body)
	}
}

func operatorPause(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	form := url.Values{"id": {rand.Text()}, "reason": {strings.Join(args[2:], " ")}}
	switch args[1] {
	case "all":
	case "each":
		form.Set("all", "true")
	case ".":
		form.Set("repo", s.full)
	default:
		form.Set("repo", args[1])
	}
	status, body, err := s.post("/"+args[0], form)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
	if (status == http.StatusOK) == neg {
		ts.Fatalf("%v: %d %s", args, status, body)
	}
}

// errandProgram builds the program that operators use, once.
var errandProgram = sync.OnceValues(func() (string, error) {
	return filepath.Join(common.Bin, "errand"), buildtest.Program(context.Background(), common.Bin, "errand")
})

// drainCmd runs `errand drain --timeout D`: drain D. It prints what the program prints.
func drainCmd(ts *testscript.TestScript, neg bool, args []string) {
	errandCmd(ts, neg, []string{"drain", "--timeout", args[0]})
}

// shownText matches the hash of a text that `errand run --json` shows.
var shownText = regexp.MustCompile(`"text": "([0-9a-f]{64})"`)

// errandCmd runs errand's program with the configuration of an operator: errand ARGS…. It prints what the program prints, and sets TEXT to
// the hash of the text that it shows.
func errandCmd(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	program, err := errandProgram()
	ts.Check(err)
	file := ts.MkAbs("operator.yml")
	text := fmt.Sprintf("listen: '%s'\ngithub: {app_id: 1, private_key: env:KEY, webhook_secret: env:SECRET}\nadmin: {token: env:TOKEN}\n"+
		"models: {anthropic: {url: 'http://127.0.0.1:1', key: env:SECRET}}\n", strings.TrimPrefix(s.w.URL, "http://"))
	ts.Check(os.WriteFile(file, []byte(text), 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{args[0], "-c", file}, args[1:]...)...)
	cmd.Env = append(os.Environ(), "TOKEN="+demo.AdminToken, "SECRET=a-secret-that-is-not-used", "KEY="+rsatest.PEM())
	out, err := cmd.CombinedOutput()
	_, _ = ts.Stdout().Write(out)
	if shown := shownText.FindSubmatch(out); shown != nil {
		ts.Setenv("TEXT", string(shown[1]))
	}
	if (err == nil) == neg {
		ts.Fatalf("errand %v: %v\n%s", args, err, out)
	}
}

// post returns the status and the body of errand's answer to a form, with the administrator's token.
func (s *story) post(path string, form url.Values) (int, string, error) {
	return s.requestWith(http.MethodPost, path, strings.NewReader(form.Encode()), true)
}

// textsCmd searches every file of the data folder for a text, also in compressed values of the store and in compressed files:
// texts TEXT some, texts TEXT none.
func textsCmd(ts *testscript.TestScript, _ bool, args []string) {
	dir := filepath.Join(of(ts).dir, "data")
	var found []string
	ts.Check(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !e.Type().IsRegular() {
			return nil
		}
		var data []byte
		if err == nil {
			data, err = os.ReadFile(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && hasText(data, args[0]) {
			found = append(found, path)
		}
		return err
	}))
	if (len(found) > 0) != (args[1] == "some") {
		ts.Fatalf("files with %q: %v, want %s", args[0], found, args[1])
	}
}

// hasText reports whether data has a text, as it is or compressed by zstd.
func hasText(data []byte, text string) bool {
	if bytes.Contains(data, []byte(text)) {
		return true
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return true
	}
	defer decoder.Close()
	for at := 0; ; at++ {
		next := bytes.Index(data[at:], []byte{0x28, 0xb5, 0x2f, 0xfd}) // a frame begins
		if next < 0 {
			return false
		}
		at += next
		plain, _ := decoder.DecodeAll(data[at:min(len(data), at+8<<20)], nil) // what follows the frame is an error
		if bytes.Contains(plain, []byte(text)) {
			return true
		}
	}
}
