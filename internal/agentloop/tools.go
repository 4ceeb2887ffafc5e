package agentloop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/shellrules"
)

// toolResult is the result of a tool call, for the model.
type toolResult struct {
	text    string
	failed  bool
	picture *picture // an image that it shows, or nil
}

func refusedResult(format string, args ...any) toolResult {
	return toolResult{text: fmt.Sprintf(format, args...), failed: true}
}

// toolbox holds the tools of a run.
type toolbox struct {
	names   []string
	rules   []rule
	judge   shellrules.Rules
	shell   *shell
	editor  *editor
	viewer  *editor // of attachments, which are not changed; nil if there are none
	schema  *answerSchema
	servers *servers
	denials []string
}

// newToolbox opens the workspace, checks the tools and rules in the settings, and starts the MCP servers.
func newToolbox(ctx context.Context, set wire.Settings, env []string, schema *answerSchema) (*toolbox, error) {
	t := &toolbox{names: set.Tools, schema: schema}
	if len(t.names) == 0 {
		t.names = []string{wire.ToolBash, wire.ToolEdit}
	}
	for _, n := range t.names {
		if !slices.Contains(wire.Tools(), n) {
			return nil, fmt.Errorf("there is no tool %q", n)
		}
	}
	var err error
	if t.rules, err = parseRules(set.Deny); err != nil {
		return nil, err
	}
	t.judge = shellrules.New(set.Shell, set.Deny)
	dir, err := filepath.EvalSymlinks(set.WorkDir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	if t.editor, err = openEditor(dir, set.WorkDir); err != nil {
		return nil, err
	}
	if set.Attachments != "" {
		t.viewer, err = openViewer(set.Attachments)
	}
	t.shell = &shell{dir: dir, env: env}
	if err == nil {
		t.servers, err = startServers(ctx, set.MCP, dir, env)
	}
	if err != nil {
		t.editor.close()
		t.viewer.close()
		return nil, err
	}
	return t, nil
}

func (t *toolbox) close() {
	t.editor.close()
	t.viewer.close()
	t.servers.close()
}

// run executes one call. All errors are reported to the model.
func (t *toolbox) run(ctx context.Context, name string, input json.RawMessage) toolResult {
	if name == wire.ToolAnswer && t.schema != nil {
		return t.schema.validateAnswer(input)
	}
	if remote := t.servers.find(name); remote != nil {
		return remote.run(ctx, input)
	}
	if !slices.Contains(t.names, name) {
		return refusedResult("There is no tool %q here.", name)
	}
	if name == wire.ToolBash {
		var call shellCall
		if err := decode(input, &call); err != nil {
			return refusedResult("%v", err)
		}
		if r := t.checkDenied(ruleBash, call.Command); r != nil {
			return *r
		}
		if why := t.judge.Judge(call.Command); why != nil {
			t.denials = append(t.denials, why.Name())
			return refusedResult("%s", why)
		}
		return t.shell.run(ctx, call)
	}
	var call editCall
	if err := decode(input, &call); err != nil {
		return refusedResult("%v", err)
	}
	if name == wire.ToolView {
		call.Command = "view"
	}
	return t.edit(call)
}

// edit executes a call of the editor.
func (t *toolbox) edit(call editCall) toolResult {
	if file, ok := t.attached(call); ok {
		return t.viewAttached(call, file)
	}
	path, err := t.editor.relativePath(call.Path)
	if err != nil {
		return t.editorFailure(call, err)
	}
	kind := ruleEdit
	if call.Command == "view" {
		kind = ruleRead
	}
	if r := t.checkDenied(kind, path); r != nil {
		return *r
	}
	text, err := t.editor.run(call, path)
	if err != nil {
		return t.editorFailure(call, err)
	}
	return toolResult{text: text}
}

// editorFailure returns the result of a failed editor call. A call for a file outside of the checkout counts as a
// denial.
func (t *toolbox) editorFailure(call editCall, err error) toolResult {
	var outside outsideError
	if errors.As(err, &outside) {
		t.denials = append(t.denials, fmt.Sprintf("%s outside of the checkout: %.100s", call.Command, call.Path))
	}
	return refusedResult("%v", err)
}

// checkDenied returns the refusal if a rule denies the call, or nil.
func (t *toolbox) checkDenied(kind, what string) *toolResult {
	for _, r := range t.rules {
		if r.matches(kind, what) {
			t.denials = append(t.denials, r.String())
			res := refusedResult("The rules of this run refuse this call (%s). Use another way, or skip it.", r)
			return &res
		}
	}
	return nil
}

// decode parses the input of a call. Unknown fields are an error, which the model can correct.
func decode(input json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the call's input is invalid: %w", err)
	}
	return nil
}

// describe describes the tools to the model.
func (t *toolbox) describe() []anthropic.ToolUnionParam {
	var out []anthropic.ToolUnionParam
	for _, n := range t.names {
		switch n {
		case wire.ToolBash:
			out = append(out, tool(n, bashWords, []string{"command"}, props{
				"command": str("The command for bash. Each command starts in the checkout; a cd does not persist."),
				"timeout": num(fmt.Sprintf("Seconds until the command is killed; default %d, at most %d.", int(defaultTimeout.Seconds()), int(maxTimeout.Seconds()))),
			}))
		case wire.ToolEdit:
			out = append(out, tool(n, editWords+t.viewerWords(), []string{"command", "path"}, editProps()))
		case wire.ToolView:
			p := editProps()
			out = append(out, tool(n, viewWords+t.viewerWords(), []string{"path"}, props{"path": p["path"], "view_range": p["view_range"]}))
		}
	}
	for i := range t.servers.tools {
		out = append(out, t.servers.tools[i].describe())
	}
	if t.schema != nil {
		out = append(out, t.schema.describe())
	}
	return out
}

// props are the properties of a tool's input.
type props map[string]any

func str(words string) any { return map[string]string{"type": "string", "description": words} }
func num(words string) any { return map[string]string{"type": "integer", "description": words} }

func tool(name, words string, required []string, p props) anthropic.ToolUnionParam {
	return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name: name, Description: param.NewOpt(words), InputSchema: anthropic.ToolInputSchemaParam{Properties: p, Required: required},
	}}
}

const (
	bashWords = "Run a command in the checkout. Returns stdout and stderr together, and the exit code if it is not 0. " +
		"Commands cannot ask for input. Background processes continue after the command has ended."
	editWords = "View and change text files of the checkout. view shows a file with line numbers, or lists a directory; " +
		"create writes a whole file, and its directories; str_replace replaces a text that must occur exactly once; insert puts text after a line."
	viewWords = "Show a text file of the checkout with line numbers, or list a directory."
)

func editProps() props {
	return props{
		"command":     map[string]any{"type": "string", "enum": []string{"view", "create", "str_replace", "insert"}, "description": "The operation."},
		"path":        str("The file or directory, absolute or relative to the checkout."),
		"view_range":  map[string]any{"type": "array", "items": map[string]string{"type": "integer"}, "description": "For view: the first and the last line, from 1; -1 is the file's end."},
		"file_text":   str("For create: the whole content."),
		"old_str":     str("For str_replace: the text to replace, exactly as in the file."),
		"new_str":     str("For str_replace: the replacement; empty deletes the text."),
		"insert_line": num("For insert: the line after which to insert the text; 0 is the beginning."),
		"insert_text": str("For insert: the text to insert."),
	}
}
