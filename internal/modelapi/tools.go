package modelapi

import (
	"strings"
	"unicode"
)

// hostedTool detects tools that the provider itself would run. Only tools that are known to run in the program that
// offers them are allowed: the effects and costs of others are unknown.
func (a API) hostedTool(v value) *Feature {
	switch v.Key.folded {
	case "mcpservers", "websearchoptions", "searchparameters", "plugins":
		if v.Depth == 1 && v.Kind != 'n' && v.Kind != '[' {
			return &Feature{Name: v.Key.plain, Kind: FeatureNetwork}
		}
	case "tools":
		if v.Kind == '"' {
			return &Feature{Name: v.text(), Kind: FeatureNetwork}
		}
	}
	if v.Owner.folded != "tools" {
		return nil
	}
	if a == Gemini { // each tool is a key
		if v.Key.folded != "functiondeclarations" {
			return &Feature{Name: v.Key.plain, Kind: FeatureNetwork}
		}
		return nil
	}
	if v.Key.folded != "type" || v.Kind == 'n' {
		return nil
	}
	if v.Kind != '"' {
		return &Feature{Name: v.Key.plain, Kind: FeatureNetwork}
	}
	if kind := v.text(); !a.isClientTool(kind) {
		return &Feature{Name: kind, Kind: FeatureNetwork}
	}
	return nil
}

// isClientTool reports whether tools of a type run in the program that offers them, or only search the offered tools.
func (a API) isClientTool(kind string) bool {
	if a == OpenAI {
		switch kind {
		case "function", "custom", "local_shell", "apply_patch", "tool_search", "namespace":
			return true
		}
		return false
	}
	if kind == "custom" {
		return true
	}
	for _, begin := range []string{"bash_", "text_editor_", "memory_", "tool_search_tool_"} {
		if strings.HasPrefix(kind, begin) {
			return true
		}
	}
	return false
}

// contentAddress detects content that the provider would fetch from an address. Under keys for addresses only inline
// content is allowed; elsewhere, except in texts, nothing that looks like an address is.
func (a API) contentAddress(v value) *Feature {
	if v.Kind != '"' || len(v.Raw) == 0 || isText(v.Key.plain) || a == Anthropic && v.Key.plain == "source" {
		return nil // the source that a program names for its own search result
	}
	switch v.Key.folded {
	case "url", "uri", "imageurl", "fileurl", "fileuri", "videourl", "audiourl", "documenturl", "imageuri", "gcsuri", "s3uri":
		if strings.HasPrefix(v.prefix(), "data:") {
			return nil
		}
		return &Feature{Name: v.Key.plain, Kind: FeatureNetwork}
	}
	if isAddress(v.prefix()) {
		return &Feature{Name: v.Key.plain, Kind: FeatureNetwork}
	}
	return nil
}

// isAddress reports whether a text is a URL of another host.
func isAddress(s string) bool {
	s = strings.TrimLeftFunc(s, func(c rune) bool { return c <= ' ' || c == '\ufeff' || unicode.IsSpace(c) })
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || len(scheme) < 2 || strings.IndexFunc(scheme, notOfScheme) >= 0 {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "gs", "s3", "ftp", "file", "ws", "wss":
		return true
	}
	return strings.HasPrefix(rest, "//")
}

func notOfScheme(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("+.-", c)
}

// isText reports whether a key is for text, which may begin with an address.
func isText(key string) bool {
	switch key {
	case "text", "content", "input", "output", "arguments", "thinking", "reasoning", "reasoning_content", "system", "instructions",
		"title", "context", "description", "refusal", "summary", "code", "stdout", "stderr", "command", "commands", "diff", "patch",
		"query", "queries", "definition", "stop", "stop_sequences", "stopSequences":
		return true
	}
	return false
}

// isFreeForm reports whether a key is for the schemas, arguments and results of a program's tools, which are not
// searched: the name of a schema is an address, and arguments may be.
func (a API) isFreeForm(key string) bool {
	switch a {
	case Anthropic:
		return key == "input" || key == "input_schema" || key == "input_examples" || key == "schema"
	case Gemini:
		switch key {
		case "args", "response", "parameters", "parametersJsonSchema", "parameters_json_schema",
			"responseSchema", "response_schema", "responseJsonSchema", "response_json_schema":
			return true
		}
		return false
	}
	return key == "arguments" || key == "parameters" || key == "schema" || key == "env"
}
