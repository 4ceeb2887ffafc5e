package simagent

import (
	"encoding/json"
	"slices"
)

// defaultSystem is what stands before the caller's rules, in place of the real one's long text.
const defaultSystem = "You are a coding agent. You work in a checkout with the tools given, and stop when the work is done."

// system is the system prompt as the API wants it.
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

// toolNames are the tools that the run offers, in a fixed order.
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

// toolList describes the tools to the model.
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
			continue // a schema that is no JSON was refused at the start
		}
		list = append(list, tool)
	}
	return list
}
