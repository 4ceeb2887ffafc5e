package agentloop

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agentloop/wire"
)

func newTools(t *testing.T, set wire.Settings) (*toolbox, string) {
	t.Helper()
	root := t.TempDir()
	set.WorkDir = filepath.Join(root, "work")
	for name, text := range map[string]string{"secret": "the secret\n", "work/a.txt": "one\ntwo\nthree\n", "work/sub/b.txt": "b", "work/.hidden": "h"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": "../secret", "up": "..", "abs": filepath.Join(root, "secret"), "in": "a.txt"} {
		if err := os.Symlink(to, filepath.Join(set.WorkDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := newToolbox(t.Context(), set, os.Environ(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tools.close)
	return tools, set.WorkDir
}

func TestEditor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in     string
		want   string // in the result
		failed bool
		file   string
		holds  string
	}{
		"view":                    {in: `{"command":"view","path":"a.txt"}`, want: "     1\tone\n     2\ttwo\n     3\tthree\n"},
		"view some":               {in: `{"command":"view","path":"a.txt","view_range":[2,2]}`, want: "     2\ttwo\n"},
		"view to the end":         {in: `{"command":"view","path":"a.txt","view_range":[3,-1]}`, want: "     3\tthree\n"},
		"view nothing":            {in: `{"command":"view","path":"a.txt","view_range":[9,10]}`, want: "no such lines"},
		"view a wrong range":      {in: `{"command":"view","path":"a.txt","view_range":[3,1]}`, want: "view_range", failed: true},
		"view a directory":        {in: `{"command":"view","path":"."}`, want: "a.txt\nabs\nin\nout\nsub/\nsub/b.txt\nup\n"},
		"view through a link":     {in: `{"command":"view","path":"in"}`, want: "one"},
		"view out by a link":      {in: `{"command":"view","path":"out"}`, want: "leads out of the checkout", failed: true},
		"view out by a full link": {in: `{"command":"view","path":"abs"}`, want: "leads out of the checkout", failed: true},
		"view out by a directory": {in: `{"command":"view","path":"up/secret"}`, want: "leads out of the checkout", failed: true},
		"view out by dots":        {in: `{"command":"view","path":"../secret"}`, want: "not in the checkout", failed: true},
		"view elsewhere":          {in: `{"command":"view","path":"/etc/passwd"}`, want: "not in the checkout", failed: true},
		"create":                  {in: `{"command":"create","path":"new/dir/c.txt","file_text":"c\n"}`, want: "written", file: "new/dir/c.txt", holds: "c\n"},
		"create over a link out":  {in: `{"command":"create","path":"out","file_text":"c\n"}`, want: "leads out", failed: true, file: "../secret", holds: "the secret\n"},
		"create beneath a link":   {in: `{"command":"create","path":"up/c.txt","file_text":"c\n"}`, want: "leads out", failed: true, file: "../secret", holds: "the secret\n"},
		"create on a directory":   {in: `{"command":"create","path":"sub","file_text":"c\n"}`, want: "not a file", failed: true},
		"replace":                 {in: `{"command":"str_replace","path":"a.txt","old_str":"two\n","new_str":"zwei\ndrei\n"}`, want: "     2\tzwei", file: "a.txt", holds: "one\nzwei\ndrei\nthree\n"},
		"replace what is twice":   {in: `{"command":"str_replace","path":"a.txt","old_str":"e","new_str":"x"}`, want: "occurs 3 times", failed: true, file: "a.txt", holds: "one\ntwo\nthree\n"},
		"replace what is not":     {in: `{"command":"str_replace","path":"a.txt","old_str":"zero","new_str":"x"}`, want: "does not occur", failed: true},
		"replace nothing":         {in: `{"command":"str_replace","path":"a.txt","new_str":"x"}`, want: "old_str is missing", failed: true},
		"insert first":            {in: `{"command":"insert","path":"a.txt","insert_line":0,"insert_text":"zero"}`, want: "     1\tzero", file: "a.txt", holds: "zero\none\ntwo\nthree\n"},
		"insert last, no newline": {in: `{"command":"insert","path":"sub/b.txt","insert_line":1,"insert_text":"c\n"}`, want: "     2\tc", file: "sub/b.txt", holds: "b\nc\n"},
		"insert too far":          {in: `{"command":"insert","path":"a.txt","insert_line":9,"insert_text":"x"}`, want: "has 3 lines", failed: true},
		"unknown command":         {in: `{"command":"undo_edit","path":"a.txt"}`, want: "no command", failed: true},
		"no path":                 {in: `{"command":"view"}`, want: "path is missing", failed: true},
		"unknown field":           {in: `{"command":"view","path":"a.txt","lines":3}`, want: "unknown field", failed: true},
		"not a file":              {in: `{"command":"view","path":"none"}`, want: "no such file", failed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools, dir := newTools(t, wire.Settings{})
			got := tools.run(t.Context(), wire.ToolEdit, json.RawMessage(test.in))
			if got.failed != test.failed || !strings.Contains(got.text, test.want) || strings.Contains(got.text, "the secret") {
				t.Errorf("%+v, want %q", got, test.want)
			}
			if test.file == "" {
				return
			}
			data, err := os.ReadFile(filepath.Join(dir, test.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.holds, string(data)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.file, diff)
			}
		})
	}
}

// TestEditorRejectsPipesAndBinaryFiles: a pipe, which would block its reader, is refused because it is not a file.
func TestEditorRejectsPipesAndBinaryFiles(t *testing.T) {
	t.Parallel()
	tools, dir := newTools(t, wire.Settings{})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skipf("no pipes can be made here: %v", err)
	}
	for _, in := range []string{`{"command":"view","path":"pipe"}`, `{"command":"create","path":"pipe","file_text":"x"}`} {
		if got := tools.run(t.Context(), wire.ToolEdit, json.RawMessage(in)); !got.failed || !strings.Contains(got.text, "not a file") {
			t.Errorf("%s: %+v", in, got)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "bytes"), []byte{0xff, 0xfe, 0}, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := tools.run(t.Context(), wire.ToolEdit, json.RawMessage(`{"command":"view","path":"bytes"}`)); !got.failed {
		t.Errorf("bytes: %+v", got)
	}
}

// TestViewer: attachments can be viewed, images of the known kinds as pictures, and not be changed. Nothing else next to the
// checkout can be viewed, and nothing at all if the run has no attachments.
func TestViewer(t *testing.T) {
	t.Parallel()
	const png = "\x89PNG\r\n\x1a\n"
	files := map[string]string{
		"a.png": png, "b": "\xff\xd8\xff\xe0", "c.gif": "GIF87a", "d.webp": "RIFF\x10\x00\x00\x00WEBPVP8 ", "e.log": "exit status 1\n",
		"f.png": "not an image", "g.bmp": "BM\x00\xff\xfe", "h.png": png + strings.Repeat(".", 5<<20), "sub/i.png": png,
	}
	tests := map[string]struct {
		path, call string // call is view unless it is set
		want       string
		media      string
		failed     bool
		denied     bool
		without    bool // attachments
	}{
		"PNG":                  {path: "../attachments/a.png", want: "a.png: image/png, 8 bytes", media: "image/png"},
		"JPEG":                 {path: "../attachments/b", want: "b: image/jpeg, 4 bytes", media: "image/jpeg"},
		"GIF":                  {path: "../attachments/c.gif", want: "image/gif", media: "image/gif"},
		"WebP":                 {path: "../attachments/d.webp", want: "image/webp", media: "image/webp"},
		"absolute path":        {path: "ROOT/attachments/a.png", want: "image/png", media: "image/png"},
		"below a directory":    {path: "../attachments/sub/i.png", want: "sub/i.png: image/png", media: "image/png"},
		"text":                 {path: "../attachments/e.log", want: "     1\texit status 1"},
		"text with a range":    {path: "../attachments/e.log", call: `,"view_range":[2,3]`, want: "no such lines"},
		"claims to be a PNG":   {path: "../attachments/f.png", want: "     1\tnot an image"},
		"another kind":         {path: "../attachments/g.bmp", want: "g.bmp is neither a text nor a PNG, JPEG, GIF or WebP image", failed: true},
		"too large":            {path: "../attachments/h.png", want: "h.png has 5242888 bytes; a picture for the model may have at most 5242880", failed: true},
		"missing":              {path: "../attachments/z.png", want: "no such file", failed: true},
		"the directory":        {path: "../attachments", want: "a.png\nb\nc.gif\n"},
		"out by a link":        {path: "../attachments/out.png", want: "leads out of the attachments", failed: true, denied: true},
		"out by dots":          {path: "../attachments/../other.png", want: "not in the checkout", failed: true, denied: true},
		"next to it":           {path: "../other.png", want: "not in the checkout", failed: true, denied: true},
		"in the checkout":      {path: "a.png", want: "a.png is not a text file; use the shell", failed: true},
		"create":               {path: "../attachments/new.png", call: `,"file_text":"x"`, want: "not in the checkout", failed: true, denied: true},
		"denied by a rule":     {path: "../attachments/c.gif", call: "denied", want: "The rules of this run refuse", failed: true, denied: true},
		"without attachments":  {path: "../attachments/a.png", want: "not in the checkout", failed: true, denied: true, without: true},
		"with the view tool":   {path: "../attachments/a.png", call: wire.ToolView, want: "image/png", media: "image/png"},
		"through the checkout": {path: "link/a.png", want: "leads out of the checkout", failed: true, denied: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for name, text := range files {
				writeFile(t, filepath.Join(root, "attachments", name), text)
			}
			for _, name := range []string{"other.png", "work/a.png"} {
				writeFile(t, filepath.Join(root, name), png+"\xff")
			}
			for at, to := range map[string]string{"attachments/out.png": "../other.png", "work/link": "../attachments"} {
				if err := os.Symlink(to, filepath.Join(root, at)); err != nil {
					t.Fatal(err)
				}
			}
			set := wire.Settings{WorkDir: filepath.Join(root, "work"), Attachments: filepath.Join(root, "attachments")}
			tool, command, more := wire.ToolEdit, "view", test.call
			switch {
			case test.without:
				set.Attachments = ""
			case test.call == "denied":
				set.Deny, more = []string{"Read(**/c.gif)"}, ""
			case test.call == wire.ToolView:
				set.Tools, tool, more = []string{wire.ToolView}, wire.ToolView, ""
			case strings.Contains(test.call, "file_text"):
				command = "create"
			}
			tools, err := newToolbox(t.Context(), set, os.Environ(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer tools.close()
			if words := tools.describe()[len(tools.names)-1].OfTool.Description.Value; strings.Contains(words, set.WorkDir) || strings.Contains(words, "attachments in") == test.without {
				t.Errorf("the tool is described as %q", words)
			}
			path := strings.ReplaceAll(test.path, "ROOT", root)
			got := tools.run(t.Context(), tool, json.RawMessage(`{"command":"`+command+`","path":"`+path+`"`+more+`}`))
			media := ""
			if got.picture != nil {
				media = got.picture.media
			}
			if got.failed != test.failed || media != test.media || !strings.Contains(got.text, test.want) || (len(tools.denials) > 0) != test.denied {
				t.Errorf("got %q, failed %v, picture %q, denials %q; want %+v", got.text, got.failed, media, tools.denials, test)
			}
		})
	}
}

// TestMissingAttachmentsAreAnError: a run whose attachments are gone does not start.
func TestMissingAttachmentsAreAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := newToolbox(t.Context(), wire.Settings{WorkDir: dir, Attachments: filepath.Join(dir, "none")}, nil, nil); err == nil || !strings.Contains(err.Error(), "open the attachments") {
		t.Errorf("got error %v", err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestShell(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		call   shellCall
		want   string
		failed bool
	}{
		"success":       {shellCall{Command: "echo a; echo b >&2"}, "a\nb", false},
		"exit code":     {shellCall{Command: "echo a; exit 7"}, "Exit code 7\na", true},
		"no input":      {shellCall{Command: "cat"}, "", false},
		"a signal":      {shellCall{Command: "kill -9 $$"}, "The command ended by a signal: signal: killed\n", true},
		"a timeout":     {shellCall{Command: "echo a; sleep 600", Timeout: 1}, "The command was killed after 1s.\na", true},
		"empty":         {shellCall{Command: "  "}, "The command is empty.", true},
		"not UTF-8":     {shellCall{Command: `printf 'a\377b'`}, "a\uFFFDb", false},
		"no such shell": {shellCall{Restart: true}, "Every command runs in its own shell; there is nothing to restart.", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shell{dir: t.TempDir(), env: os.Environ()}
			got := s.run(t.Context(), test.call)
			if diff := cmp.Diff(toolResult{text: test.want, failed: test.failed}, got, cmp.AllowUnexported(toolResult{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestShellStops: the end of the run ends the command and its descendants.
func TestShellStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan toolResult)
	go func() {
		s := &shell{dir: dir, env: os.Environ()}
		done <- s.run(ctx, shellCall{Command: "sleep 600 & echo $! > child; wait"})
	}()
	var pid int
	wait(t, "the child", func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "child"))
		return err == nil && bytes.HasSuffix(data, []byte("\n")) && json.Unmarshal(bytes.TrimSpace(data), &pid) == nil
	})
	cancel()
	if got := <-done; !got.failed || !strings.Contains(got.text, "interrupted") {
		t.Errorf("%+v", got)
	}
	wait(t, "the child's end", func() bool { return !running(pid) })
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join("/proc", jsonInt(pid), "stat"))
	_, state, _ := strings.Cut(string(data), ") ")
	return err != nil || !strings.HasPrefix(state, "Z")
}

func jsonInt(n int) string {
	data, _ := json.Marshal(n)
	return string(data)
}

func wait(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	out := &headTailBuffer{limit: 100}
	for range 10_000 {
		if _, err := out.Write([]byte("abcdefghij")); err != nil {
			t.Fatal(err)
		}
		if len(out.head)+len(out.tail) > 300 {
			t.Fatalf("%d bytes are held", len(out.head)+len(out.tail))
		}
	}
	want := strings.Repeat("abcdefghij", 5) + "\n[… 99900 bytes left out …]\n" + strings.Repeat("abcdefghij", 5)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDeny(t *testing.T) {
	t.Parallel()
	tools, _ := newTools(t, wire.Settings{Deny: []string{"Bash(git push:*)", "Bash(sudo:*)", "Bash(exactly this)", "Edit(sub/**)", "Read(.hidden)", "WebFetch", "Edit(*.lock)"}})
	for call, denied := range map[string]bool{
		`{"command":"git push origin"}`:              true,
		`{"command":"  git  push"}`:                  true,
		`{"command":"true && git push -f || true"}`:  true,
		`{"command":"exactly this"}`:                 true,
		`{"command":"exactly this or that"}`:         false,
		`{"command":"echo git push"}`:                false,
		`{"command":"sudoku --version"}`:             false,
		`{"command":"git log"}`:                      false,
		`{"command":"create","path":"sub/c.txt"}`:    true,
		`{"command":"create","path":"x/../sub/c"}`:   true,
		`{"command":"view","path":"sub/b.txt"}`:      false,
		`{"command":"view","path":".hidden"}`:        true,
		`{"command":"create","path":"a/b/yarn.loc"}`: false,
		`{"command":"create","path":"yarn.lock"}`:    true,
	} {
		name := wire.ToolBash
		if strings.Contains(call, "path") {
			name = wire.ToolEdit
		}
		before := len(tools.denials)
		got := tools.run(t.Context(), name, json.RawMessage(call))
		if refused := len(tools.denials) > before; refused != denied || denied && !got.failed {
			t.Errorf("%s: refused %v, %+v", call, refused, got)
		}
	}
	for _, bad := range []string{"Bash(", "Edit()", "Edit([)"} {
		if _, err := parseRules([]string{bad}); err == nil {
			t.Errorf("the rule %q was taken", bad)
		}
	}
}

// TestViewOnly: a read-only run has no other tool, whatever the model calls.
func TestViewOnly(t *testing.T) {
	t.Parallel()
	tools, _ := newTools(t, wire.Settings{Tools: []string{wire.ToolView}})
	if got := tools.run(t.Context(), wire.ToolView, json.RawMessage(`{"path":"a.txt","command":"create","file_text":"x"}`)); got.failed || !strings.Contains(got.text, "one") {
		t.Errorf("view: %+v", got)
	}
	for _, name := range []string{wire.ToolBash, wire.ToolEdit, wire.ToolAnswer, ""} {
		if got := tools.run(t.Context(), name, json.RawMessage(`{"command":"create","path":"a.txt","file_text":"x"}`)); !got.failed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := len(tools.describe()); n != 1 {
		t.Errorf("%d tools are offered", n)
	}
}
