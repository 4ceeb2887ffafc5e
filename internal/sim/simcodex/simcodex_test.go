package simcodex_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simcodex"
)

// answering returns a model that answers every request with these events.
func answering(t *testing.T, events string) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/responses" || r.Header.Get("Authorization") != "Bearer token" {
			http.Error(w, "not this", http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprint(w, events)
	}))
	t.Cleanup(web.Close)
	return web
}

// codex runs the simulator with a model.
func codex(t *testing.T, home string, web *httptest.Server, prompt string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	const provider = "model_providers.p."
	args = append(args, "--json", "--model", "m", "-c", `model_provider="p"`, "-c", provider+fmt.Sprintf("base_url=%q", web.URL+"/v1"), "-c", provider+`env_key="KEY"`,
		"-c", provider+"stream_max_retries=1")
	var out, said bytes.Buffer
	code = simcodex.Main(append([]string{"exec"}, args...), strings.NewReader(prompt), &out, &said, []string{"CODEX_HOME=" + home, "KEY=token", "SIMAGENT_RETRY_SCALE=0", "PATH=" + os.Getenv("PATH")})
	return code, out.String(), said.String()
}

const (
	hello = "event: response.completed\n" + `data: {"type":"response.completed","response":{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello."}]}],"usage":{"input_tokens":7,"output_tokens":2}}}` + "\n\n"
	full  = "event: response.failed\n" + `data: {"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"m"}}}` + "\n\n"
	short = "event: response.incomplete\n" + `data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}` + "\n\n"
)

// TestEndsLikeTheRealProgram: exit codes and final messages equal those of the real program.
func TestEndsLikeTheRealProgram(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events, prompt string
		args           []string
		code           int
		stdout, stderr string
	}{
		"an answer":                   {hello, "Hi.", []string{"-"}, 0, `"type":"turn.completed"`, ""},
		"too long":                    {full, "Hi.", []string{"-"}, 1, "ran out of room in the model's context window", ""},
		"cut short":                   {short, "Hi.", []string{"-"}, 1, "reason: max_output_tokens", ""},
		"no end":                      {"", "Hi.", []string{"-"}, 1, `Reconnecting... 1/1 (stream disconnected`, ""},
		"no prompt":                   {hello, " \n", []string{"-"}, 1, "", "no prompt"},
		"another flag":                {hello, "Hi.", []string{"--sandbox", "-"}, 2, "", "unexpected argument '--sandbox'"},
		"prompt as an argument":       {hello, "Hi.", []string{"do it"}, 2, "", "only from stdin"},
		"no such thread":              {hello, "Hi.", []string{"resume", "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e", "-"}, 1, "", "no rollout found for thread id"},
		"a name, not an ID":           {hello, "Hi.", []string{"resume", "mine", "-"}, 0, `"type":"thread.started"`, ""},
		"a fork of an unknown thread": {hello, "Hi.", []string{"fork", "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e", "-"}, 1, "", "no rollout found"},
	} {
		code, stdout, stderr := codex(t, t.TempDir(), answering(t, tc.events), tc.prompt, tc.args...)
		if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) || tc.stderr != "" && stdout != "" {
			t.Errorf("%s: got exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
}

// TestUsageAddsUp: the reported usage is that of the whole thread, including earlier processes.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	home, web := t.TempDir(), answering(t, hello)
	if code, stdout, _ := codex(t, home, web, "Hi.", "-"); code != 0 || !strings.Contains(stdout, `"input_tokens":7`) {
		t.Fatalf("got exit code %d\n%s", code, stdout)
	}
	files, err := filepath.Glob(filepath.Join(home, "sessions", "*", "*", "*", "rollout-*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got files %q, %v", files, err)
	}
	name := strings.TrimSuffix(filepath.Base(files[0]), ".jsonl")
	code, stdout, _ := codex(t, home, web, "Hi again.", "resume", name[len(name)-36:], "-")
	if code != 0 || !strings.Contains(stdout, `"input_tokens":14`) || !strings.Contains(stdout, `"output_tokens":4`) {
		t.Errorf("got exit code %d\n%s", code, stdout)
	}
}
