package simmodel

import "slices"

// editTool is the text editor tool in the Messages API's documentation.
const editTool = "str_replace_based_edit_tool"

// offered translates a call from the names in scripts to the tools that a client of the Messages API offers, if those
// are a shell named bash and a text editor. Other calls are kept.
func offered(c Call, tools []string) Call {
	has := func(name string) bool { return slices.Contains(tools, name) }
	in := func(key string) any { return c.Input[key] }
	switch {
	case has(c.Name):
	case c.Name == "Bash" && has("bash"):
		c.Name = "bash"
	case !has(editTool):
	case c.Name == "Read":
		c.Name, c.Input = editTool, map[string]any{"command": "view", "path": in("file_path")}
	case c.Name == "Write":
		c.Name, c.Input = editTool, map[string]any{"command": "create", "path": in("file_path"), "file_text": in("content")}
	case c.Name == "Edit":
		c.Name, c.Input = editTool, map[string]any{
			"command": "str_replace", "path": in("file_path"), "old_str": in("old_string"), "new_str": in("new_string"),
		}
	}
	return c
}
