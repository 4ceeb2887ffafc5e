package gateway_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/gateway"
)

func TestHosted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		api        gateway.API
		body, want string
	}{
		"the agent's own tools":     {gateway.Anthropic, `{"tools":[{"name":"web_search","input_schema":{"type":"object"}},{"type":"bash_20250124","name":"bash"}],"mcp_servers":[]}`, ""},
		"in what was said":          {gateway.Anthropic, `{"messages":[{"content":"{\"tools\":[{\"type\":\"mcp\"}]}"}]}`, ""},
		"Anthropic fetches":         {gateway.Anthropic, `{"tools":[{"name":"a"},{"type":"web_fetch_20250910","name":"web_fetch"}]}`, "web_fetch_20250910"},
		"Anthropic searches":        {gateway.Anthropic, `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, "web_search_20250305"},
		"Anthropic calls a server":  {gateway.Anthropic, `{"mcp_servers":[{"type":"url","url":"https://exfiltrate.example"}]}`, "mcp_servers"},
		"Anthropic, a set of tools": {gateway.Anthropic, `{"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]}`, "mcp_toolset"},
		"OpenAI, functions":         {gateway.OpenAI, `{"tools":[{"type":"function","name":"shell"},{"type":"custom","name":"apply_patch"},{"type":"local_shell"}]}`, ""},
		"OpenAI calls a server":     {gateway.OpenAI, `{"tools":[{"type":"mcp","server_url":"https://exfiltrate.example"}]}`, "mcp"},
		"OpenAI searches":           {gateway.OpenAI, `{"tools":[{"type":"web_search_preview"}]}`, "web_search_preview"},
		"OpenAI, chat, searches":    {gateway.OpenAI, `{"web_search_options":{}}`, "web_search_options"},
		"Gemini, functions":         {gateway.Gemini, `{"tools":[{"functionDeclarations":[{"name":"google_search"}]}]}`, ""},
		"Gemini fetches":            {gateway.Gemini, `{"tools":[{"functionDeclarations":[]},{"urlContext":{}}]}`, "urlContext"},
		"Gemini searches":           {gateway.Gemini, `{"tools":[{"google_search":{}}]}`, "google_search"},
		"what nobody takes":         {gateway.OpenAI, `{"tools":{"type":"mcp"}}`, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.api.Hosted([]byte(test.body)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
