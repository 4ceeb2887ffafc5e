package simagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// settings is the supported part of a settings file.
type settings struct {
	Env  map[string]string
	Deny []string
	// Hooks are called before a tool call.
	Hooks []hook
}

// loadSettings reads --settings: a path or JSON. It ignores values of a wrong type, like the real CLI; a missing file
// or invalid JSON is an error.
func loadSettings(arg string) (settings, error) {
	var s settings
	if arg == "" {
		return s, nil
	}
	data, err := pathOrJSON(arg)
	if err != nil {
		return s, fmt.Errorf("Settings file not found: %s", arg) //nolint:staticcheck // as claude says it
	}
	if !json.Valid(data) {
		return s, errors.New("Invalid JSON provided to --settings") //nolint:staticcheck // as claude says it
	}
	var env struct {
		Env map[string]string `json:"env"`
	}
	var perms struct {
		Permissions struct {
			Deny []string `json:"deny"`
		} `json:"permissions"`
	}
	if json.Unmarshal(data, &env) == nil {
		s.Env = env.Env
	}
	if json.Unmarshal(data, &perms) == nil {
		s.Deny = perms.Permissions.Deny
	}
	s.Hooks = loadHooks(data)
	return s, nil
}

// checkMCP refuses unreadable configurations.
func checkMCP(args []string) error {
	for _, arg := range args {
		data, err := pathOrJSON(arg)
		if err != nil || !json.Valid(data) {
			return fmt.Errorf("Invalid MCP configuration: %s", arg) //nolint:staticcheck // as claude says it
		}
	}
	return nil
}

func pathOrJSON(arg string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(arg), "{") {
		return []byte(arg), nil
	}
	return os.ReadFile(arg)
}

func readInto(at *string, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	*at = string(data)
	return nil
}

// denial is a tool call that was not allowed, as the result lists it.
type denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// forbidden returns why a call may not be made, or "".
func (a *agent) forbidden(ctx context.Context, b block) string {
	in := readInput(b.Input)
	for _, r := range slices.Concat(a.set.Deny, a.opt.denied) {
		if denies(r, b.Name, in, a.cwd) {
			if b.Name == toolBash {
				return "Permission to use Bash with command " + in.Command + " has been denied."
			}
			return "<tool_use_error>File is in a directory that is denied by your permission settings.</tool_use_error>"
		}
	}
	verdict, why := a.askHooks(ctx, b)
	if verdict == "deny" {
		return why
	}
	allowed := verdict == "allow" || a.opt.bypass() || b.Name == toolRead || a.allows(b.Name, in) ||
		(a.opt.mode == "acceptEdits" && b.Name != toolBash)
	switch {
	case allowed:
		return ""
	case a.opt.mode == "dontAsk":
		return "Permission to use " + b.Name + " has been denied because Claude Code is running in don't ask mode."
	}
	return "Claude requested permissions to use " + b.Name + ", but you haven't granted it yet."
}

// allows reports whether a rule allows a call: by the name of a tool or its server, a file's path, or the prefix of
// each part of a command. The real CLI parses more complex commands further; here they are not allowed.
func (a *agent) allows(tool string, in toolInput) bool {
	command := in.Command
	server, _, _ := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	if slices.Contains(a.opt.allowed, tool) || tool == toolStructured ||
		strings.HasPrefix(tool, "mcp__") && slices.Contains(a.opt.allowed, "mcp__"+server) {
		return true
	}
	if tool == toolWrite || tool == toolEdit {
		return slices.ContainsFunc(a.opt.allowed, func(rule string) bool { return denies(rule, tool, in, a.cwd) })
	}
	if tool != toolBash || command == "" || strings.ContainsAny(command, "<>`$(){}\\") {
		return false
	}
	for part := range strings.SplitSeq(strings.NewReplacer("&&", "\n", "||", "\n", ";", "\n", "|", "\n", "&", "\n").Replace(command), "\n") {
		if !slices.ContainsFunc(a.opt.allowed, func(rule string) bool { return denies(rule, toolBash, toolInput{Command: part}, a.cwd) }) {
			return false
		}
	}
	return true
}

// denies reports whether a rule such as Bash, Bash(git push:*) or Edit(.github/**) covers a call.
func denies(rule, tool string, in toolInput, cwd string) bool {
	name, arg, hasArg := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
	if name != tool && (name != toolEdit || tool != toolWrite) {
		return false
	}
	if !hasArg {
		return true
	}
	if tool == toolBash {
		prefix, isPrefix := strings.CutSuffix(arg, ":*")
		for part := range strings.SplitSeq(strings.NewReplacer("&&", "\n", ";", "\n", "||", "\n").Replace(in.Command), "\n") {
			part = strings.TrimSpace(part)
			if part == arg || isPrefix && (part == prefix || strings.HasPrefix(part, prefix+" ")) {
				return true
			}
		}
		return false
	}
	if root, ok := strings.CutPrefix(arg, "/"); ok && strings.HasPrefix(root, "/") { // two slashes: an absolute path
		ok, err := doublestar.Match(root, filepath.ToSlash(absolute(in.Path, cwd)))
		return err == nil && ok
	}
	rel, err := filepath.Rel(cwd, absolute(in.Path, cwd))
	if err != nil {
		return false
	}
	ok, err := doublestar.Match(strings.TrimPrefix(arg, "./"), filepath.ToSlash(rel))
	return err == nil && ok
}
