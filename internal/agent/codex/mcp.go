package codex

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agent/cli"
)

// mcpServer is an MCP server in the standard configuration format.
type mcpServer struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// mcpSettings translates the servers. Values of their environments and headers may be secret, so they go into the run's
// environment, and the settings only contain the names of the variables.
func mcpSettings(raw json.RawMessage, env map[string]string) ([]string, error) {
	var in struct {
		Servers map[string]mcpServer `json:"mcpServers"`
	}
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("read the MCP configuration: %w", err)
	}
	var set []string
	for _, name := range slices.Sorted(maps.Keys(in.Servers)) {
		if !isServerName(name) {
			return nil, fmt.Errorf("%q cannot be the name of an MCP server", name)
		}
		server := in.Servers[name]
		fields := []string{"required=false"}
		switch {
		case server.Command != "":
			vars := slices.Sorted(maps.Keys(server.Env))
			for _, v := range vars {
				if old, set := env[v]; set && old != server.Env[v] {
					return nil, fmt.Errorf("the MCP server %s sets %s to a different value than the run", name, v)
				}
				env[v] = server.Env[v]
			}
			fields = append(fields, "command="+cli.TOMLString(server.Command), "args="+cli.TOMLStrings(server.Args), "env_vars="+cli.TOMLStrings(vars))
		case server.URL != "":
			fields = append(fields, "url="+cli.TOMLString(server.URL))
			if headers := headerSetting(name, server.Headers, env); headers != "" {
				fields = append(fields, headers)
			}
		default:
			return nil, fmt.Errorf("the MCP server %s has neither a command nor a URL", name)
		}
		set = append(set, "mcp_servers."+name+"={"+strings.Join(fields, ",")+"}")
	}
	return set, nil
}

// headerSetting stores a server's headers in variables and returns the setting that refers to them.
func headerSetting(server string, headers, env map[string]string) string {
	var pairs []string
	for i, h := range slices.Sorted(maps.Keys(headers)) {
		v := fmt.Sprintf("ERRAND_MCP_%s_%d", strings.ToUpper(strings.ReplaceAll(server, "-", "_")), i)
		env[v] = headers[h]
		pairs = append(pairs, cli.TOMLString(h)+"="+cli.TOMLString(v))
	}
	if len(pairs) == 0 {
		return ""
	}
	return "env_http_headers={" + strings.Join(pairs, ",") + "}"
}

// isServerName reports whether a name is valid in a dotted TOML key.
func isServerName(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
