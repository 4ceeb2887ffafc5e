package main

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/runner/mcp"
)

func mcpCommand(version string) *cobra.Command {
	config := mcp.Config{Version: version}
	cmd := &cobra.Command{
		Use: "mcp", Short: "Offer errand's tools to an agent: MCP on standard input and output", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mcp.Serve(cmd.Context(), config, &sdk.StdioTransport{MaxLineLength: 4 << 20})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.URL, "url", "http://127.0.0.1:9413", "address of the tether")
	flags.StringVar(&config.TokenFile, "token-file", "", "file with the run's token, readable by its owner only")
	_ = cmd.MarkFlagRequired("token-file")
	return cmd
}
