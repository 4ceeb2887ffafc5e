package gateway

import (
	"encoding/json"
	"strings"
)

// Hosted returns the first thing in a call's body by which the provider itself would reach other hosts for the
// agent: a tool that fetches or searches pages, or an MCP server; empty if there is none. What a VM may not
// reach by itself it could else have fetched, or told, by its model's provider. The body is valid JSON.
func (a API) Hosted(body []byte) string {
	found := ""
	_ = topLevel(body, func(key string, value []byte) error { // see never fails
		switch strings.ToLower(key) {
		case "mcp_servers":
			if !empty(value) {
				found = key
			}
		case "web_search_options":
			found = key
		case "tools":
			var tools []map[string]json.RawMessage
			if json.Unmarshal(value, &tools) != nil {
				return nil // the provider refuses it
			}
			for _, t := range tools {
				if name := a.hostedTool(t); name != "" {
					found = name
				}
			}
		}
		return nil
	})
	return found
}

// hostedTool returns what makes a tool one that the provider runs and that reaches other hosts.
func (a API) hostedTool(tool map[string]json.RawMessage) string {
	if a == Gemini { // each tool is a key
		for key := range tool {
			switch strings.ToLower(strings.ReplaceAll(key, "_", "")) {
			case "googlesearch", "googlesearchretrieval", "urlcontext", "enterprisewebsearch", "googlemaps", "mcpservers":
				return key
			}
		}
		return ""
	}
	for key, value := range tool {
		var kind string
		if !strings.EqualFold(key, "type") || json.Unmarshal(value, &kind) != nil {
			continue
		}
		for _, begin := range []string{"web_search", "web_fetch", "mcp"} {
			if strings.HasPrefix(kind, begin) {
				return kind
			}
		}
	}
	return ""
}

// empty reports whether a value holds nothing.
func empty(value []byte) bool {
	s := string(value)
	return s == "null" || s == "[]" || s == "{}"
}
