package simagent

import (
	"encoding/json"
	"slices"
)

// defaultSystem precedes the caller's rules, instead of the real CLI's long text.
const defaultSystem = "You are a coding agent. You work in a checkout with the tools given, and stop when the work is done."

// system returns the system prompt in the API's format.
func (a *agent) system() []block {
	text := a.opt.system
	if text == "" {
		text = defaultSystem + "\n\nWorking directory: " + a.cwd
	}
	if a.opt.appendText != "" {
		text += "\n\n" + a.opt.appendText
	}
	return []block{{Type: "text", Text: text}}
}

// toolNames returns the run's tools in a fixed order.
func (a *agent) toolNames() []string {
	names := []string{toolBash, toolEdit, toolRead, toolWrite}
	if a.opt.toolsGiven {
		names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(a.opt.tools, n) })
	}
	if a.opt.schema != "" {
		names = append(names, toolStructured)
	}
	return names
}

// toolList returns the tool descriptions for the model.
func (a *agent) toolList() []json.RawMessage {
	text := map[string]string{"type": "string"}
	number := map[string]string{"type": "number"}
	inputs := map[string]map[string]any{
		toolBash:  {"command": text, "timeout": number, "description": text},
		toolRead:  {"file_path": text, "offset": number, "limit": number},
		toolWrite: {"file_path": text, "content": text},
		toolEdit:  {"file_path": text, "old_string": text, "new_string": text, "replace_all": map[string]string{"type": "boolean"}},
	}
	list := []json.RawMessage{}
	for _, name := range a.toolNames() {
		var schema any = map[string]any{"type": "object", "properties": inputs[name]}
		if name == toolStructured {
			schema = json.RawMessage(a.opt.schema)
		}
		tool, err := json.Marshal(map[string]any{"name": name, "description": name, "input_schema": schema})
		if err != nil {
			continue // an invalid schema was refused at the start
		}
		list = append(list, tool)
	}
	return list
}
