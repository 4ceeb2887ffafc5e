// Package mcp is the MCP server that an agent's CLI starts on a VM. It offers errand's tools on standard input and
// output, and forwards each call through the tether; the orchestrator interprets it.
//
// Each call has an id, so that it can be sent again if its answer was lost: the tether may be interrupted for minutes,
// and a restart of errand must not cause an error for the agent.
//
// Start here: [Serve].
package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/internal/clock"
)

// Config configures Serve.
type Config struct {
	// URL is the address of the tether on this VM; calls are posted to /callback/TOOL below it.
	URL string
	// TokenFile contains the run's token; Serve refuses a file that others may read.
	TokenFile string
	Version   string
	// Patience is how long a call is retried while the orchestrator is unreachable; zero means 3 minutes.
	Patience time.Duration
	// Pause is the wait before a retry; zero means 1 second.
	Pause time.Duration
}

// attemptTimeout bounds one attempt: the tether holds requests that it cannot forward for up to 10 minutes.
const attemptTimeout = 2 * time.Minute

// Serve answers the agent until the transport closes or ctx ends.
func Serve(ctx context.Context, cfg Config, t sdk.Transport) error {
	c, err := newCaller(cfg)
	if err != nil {
		return err
	}
	s := sdk.NewServer(&sdk.Implementation{Name: tools.Server, Version: cfg.Version}, &sdk.ServerOptions{
		Instructions: "These tools talk to errand, which runs you. Use them sparingly.", Capabilities: &sdk.ServerCapabilities{},
	})
	addTool[tools.AskInput](s, c, tools.Ask, "Ask the people who gave you this task something that you need to know and cannot find out. The run ends with it: call nothing afterwards and stop. You go on in this session when somebody has answered.")
	addTool[tools.NoteInput](s, c, tools.Note, "Keep a fact that took effort to find, a decision with its reason, or a finished step. Notes outlive this session; people see them.")
	addTool[tools.ProposeInput](s, c, tools.Propose, "Propose an issue for something that is wrong or missing and that is not part of this task. People decide whether it is created.")
	addTool[tools.FinishInput](s, c, tools.Finish, "Say how the run ends, instead of the closing block of your answer. Your last message is still what people read.")
	addTool[tools.ContextInput](s, c, tools.Context, "Read the notes kept so far, the last results of the repository's checks, or the text of another issue or pull request of this repository as far as trusted people wrote it.")
	err = s.Run(ctx, t)
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// addTool adds one tool.
func addTool[In any](s *sdk.Server, c *caller, name, description string) {
	tool := &sdk.Tool{Name: name, Description: description}
	sdk.AddTool(s, tool, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		answer, err := c.call(ctx, name, in)
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{IsError: answer.Refused, Content: []sdk.Content{&sdk.TextContent{Text: answer.Text}}}, nil, nil
	})
}

// caller forwards calls.
type caller struct {
	cfg   Config
	token string
	http  *http.Client
}

func newCaller(cfg Config) (*caller, error) {
	info, err := os.Stat(cfg.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("find the run's token: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s may be read by others", cfg.TokenFile)
	}
	data, err := os.ReadFile(cfg.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("read the run's token: %w", err)
	}
	if cfg.Patience == 0 {
		cfg.Patience = 3 * time.Minute
	}
	if cfg.Pause == 0 {
		cfg.Pause = time.Second
	}
	return &caller{
		cfg: cfg, token: strings.TrimSpace(string(data)),
		// The tether is on loopback, so proxies from the environment are ignored.
		http: &http.Client{Transport: &http.Transport{Proxy: nil}, Timeout: attemptTimeout},
	}, nil
}

// call sends a call until it is answered, the patience is exhausted or ctx ends.
func (c *caller) call(ctx context.Context, tool string, in any) (tools.Answer, error) {
	arguments, err := json.Marshal(in)
	if err != nil {
		return tools.Answer{}, fmt.Errorf("encode the call: %w", err)
	}
	body, err := json.Marshal(tools.Call{ID: uuid.NewString(), Arguments: arguments})
	if err != nil {
		return tools.Answer{}, fmt.Errorf("encode the call: %w", err)
	}
	if len(body) > tools.MaxCall {
		return tools.Answer{Text: fmt.Sprintf("the call has %d bytes; at most %d are taken", len(body), tools.MaxCall), Refused: true}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Patience)
	defer cancel()
	for {
		answer, retry, err := c.send(ctx, tool, body)
		if err == nil || !retry {
			return answer, err
		}
		if clock.Sleep(ctx, c.cfg.Pause) != nil {
			return tools.Answer{}, fmt.Errorf("errand cannot be reached now: %w", err)
		}
	}
}

// send sends a call once. retry reports whether the call may be sent again after an error.
func (c *caller) send(ctx context.Context, tool string, body []byte) (answer tools.Answer, retry bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.cfg.URL, "/")+"/callback/"+tool, bytes.NewReader(body))
	if err != nil {
		return answer, false, fmt.Errorf("make the call: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return answer, true, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 4*tools.MaxCall))
	switch {
	case err != nil:
		return answer, true, fmt.Errorf("read the answer: %w", err)
	case resp.StatusCode >= 500:
		return answer, true, fmt.Errorf("errand answers %s", resp.Status)
	case resp.StatusCode != http.StatusOK:
		return answer, false, fmt.Errorf("errand answers %s: %s", resp.Status, strings.TrimSpace(string(data[:min(len(data), 300)])))
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return answer, false, fmt.Errorf("read errand's answer: %w", err)
	}
	return answer, false, nil
}
