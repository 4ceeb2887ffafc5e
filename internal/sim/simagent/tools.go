package simagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The supported tools.
const (
	toolBash       = "Bash"
	toolRead       = "Read"
	toolWrite      = "Write"
	toolEdit       = "Edit"
	toolStructured = "StructuredOutput"
)

// Limits of one tool call.
const (
	bashTimeout    = 2 * time.Minute
	bashMaxTimeout = 10 * time.Minute
	maxOutput      = 30_000
)

// toolInput is the union of the tools' inputs.
type toolInput struct {
	Command    string `json:"command"`
	TimeoutMS  int64  `json:"timeout"`
	Path       string `json:"file_path"`
	Content    string `json:"content"`
	Old        string `json:"old_string"`
	New        string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
	Offset     int    `json:"offset"`
	Limit      int    `json:"limit"`
}

// readInput decodes a call's input; mismatching values stay empty, and the tool reports the missing input.
func readInput(raw json.RawMessage) toolInput {
	var in toolInput
	_ = json.Unmarshal(raw, &in)
	return in
}

// outcome is a tool's result: for the model, and in detail for the events.
type outcome struct {
	text    string
	isError bool
	detail  any
}

func toolFailure(format string, args ...any) outcome {
	text := fmt.Sprintf(format, args...)
	return outcome{text: "<tool_use_error>" + text + "</tool_use_error>", isError: true, detail: "Error: " + text}
}

// toolResult returns the block with a tool's result for the model.
func toolResult(id, text string, isError bool) block {
	content, err := json.Marshal(text)
	if err != nil {
		content = []byte(`""`)
	}
	return block{Type: "tool_result", ToolUseID: id, Content: content, IsError: isError}
}

// call runs one tool. ctx ends it early.
func (a *agent) call(ctx context.Context, b block) outcome {
	in := readInput(b.Input)
	path := absolute(in.Path, a.cwd)
	if in.Path == "" && (b.Name == toolRead || b.Name == toolWrite || b.Name == toolEdit) {
		return toolFailure("InputValidationError: %s failed: the required parameter `file_path` is missing", b.Name)
	}
	if strings.HasPrefix(b.Name, mcpPrefix) {
		return a.callServer(ctx, b)
	}
	switch b.Name {
	case toolBash:
		return a.bash(ctx, in)
	case toolRead:
		return readFile(path, in)
	case toolWrite:
		return writeFile(path, in)
	case toolEdit:
		return editFile(path, in)
	}
	return toolFailure("Error: No such tool available: %s", b.Name)
}

func absolute(path, cwd string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cwd, path)
}

// bash runs a command in a separate session. Its output goes to a file, so that a child that outlives the command does
// not block the agent.
func (a *agent) bash(ctx context.Context, in toolInput) outcome {
	if strings.TrimSpace(in.Command) == "" {
		return toolFailure("InputValidationError: Bash failed: the required parameter `command` is missing")
	}
	limit := bashTimeout
	if in.TimeoutMS > 0 {
		limit = min(time.Duration(in.TimeoutMS)*time.Millisecond, bashMaxTimeout)
	}
	stdout, err := os.CreateTemp("", "simagent-*")
	if err != nil {
		return toolFailure("create a file for the output: %v", err)
	}
	defer os.Remove(stdout.Name())
	defer stdout.Close()

	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, shell(), "-c", in.Command)
	cmd.Dir, cmd.Env = a.cwd, append(a.env[:len(a.env):len(a.env)], "CLAUDECODE=1")
	cmd.Stdout, cmd.Stderr = stdout, stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()

	text := readOutput(stdout.Name())
	detail := map[string]any{"stdout": text, "stderr": "", "interrupted": ctx.Err() != nil}
	switch {
	case ctx.Err() != nil:
		return outcome{text: strings.TrimRight("Exit code 137\n"+text, "\n"), isError: true, detail: detail}
	case bounded.Err() != nil:
		text = fmt.Sprintf("Exit code 143\nCommand timed out after %s\n%s", limit, text)
		return outcome{text: strings.TrimRight(text, "\n"), isError: true, detail: "Error: " + text}
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		text = strings.TrimRight(fmt.Sprintf("Exit code %d\n%s", exit.ExitCode(), text), "\n")
		return outcome{text: text, isError: true, detail: "Error: " + text}
	case err != nil:
		return toolFailure("start the shell: %v", err)
	}
	text = strings.TrimRight(text, "\n")
	if text == "" {
		text = "(Bash completed with no output)"
	}
	return outcome{text: text, detail: detail}
}

// shell returns bash if it is installed, because models write for it.
func shell() string {
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "/bin/sh"
}

// readOutput returns a command's output, with the middle omitted if it is too long.
func readOutput(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	if cut := len(data) - maxOutput; cut > 0 {
		half := maxOutput / 2
		note := fmt.Appendf(nil, "\n\n... [%d characters truncated] ...\n\n", cut)
		data = bytes.Join([][]byte{data[:half], note, data[len(data)-half:]}, nil)
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

func readFile(path string, in toolInput) outcome {
	data, err := os.ReadFile(path)
	if err != nil {
		return toolFailure("File does not exist or cannot be read: %v", err)
	}
	lines := strings.Split(string(data), "\n")
	from := min(max(in.Offset, 1), len(lines)) - 1
	limit := in.Limit
	if limit <= 0 {
		limit = 2000
	}
	shown := lines[from:min(from+limit, len(lines))]
	for i, line := range shown {
		shown[i] = fmt.Sprintf("%d\t%s", from+i+1, line)
	}
	return outcome{
		text:   strings.Join(shown, "\n"),
		detail: map[string]any{"type": "text", "file": map[string]any{"filePath": path, "numLines": len(shown)}},
	}
}

func writeFile(path string, in toolInput) outcome {
	before, err := os.ReadFile(path)
	text := "The file " + in.Path + " has been updated successfully."
	if err != nil {
		text = "File created successfully at: " + in.Path
	}
	if err := replaceFile(path, in.Content); err != nil {
		return toolFailure("%v", err)
	}
	return outcome{
		text:   text + inContext,
		detail: map[string]any{"filePath": path, "originalFile": string(before)},
	}
}

func editFile(path string, in toolInput) outcome {
	data, err := os.ReadFile(path)
	if err != nil {
		return toolFailure("File does not exist or cannot be read: %v", err)
	}
	before := string(data)
	n := strings.Count(before, in.Old)
	switch {
	case in.Old == "":
		return toolFailure("InputValidationError: Edit failed: `old_string` is empty; use Write for a new file")
	case in.Old == in.New:
		return toolFailure("No changes to make: old_string and new_string are exactly the same.")
	case n == 0:
		return toolFailure("String to replace not found in file.\nString: %s", in.Old)
	case n > 1 && !in.ReplaceAll:
		return toolFailure("Found %d matches of the string to replace, but replace_all is false.", n)
	}
	if err := replaceFile(path, strings.ReplaceAll(before, in.Old, in.New)); err != nil {
		return toolFailure("%v", err)
	}
	return outcome{
		text:   "The file " + in.Path + " has been updated successfully." + inContext,
		detail: map[string]any{"filePath": path, "originalFile": before},
	}
}

// inContext is appended by the real CLI to the result of a file change.
const inContext = " (file state is current in your context — no need to Read it back)"

// replaceFile writes a file, with its mode if it exists.
func replaceFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create the directory: %w", err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return fmt.Errorf("write the file: %w", err)
	}
	return nil
}
