package simagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxLoop limits the responses of a run without --max-turns.
const maxLoop = 1000

// run executes the prompt and prints the outcome.
func (a *agent) run(ctx context.Context) int {
	a.bill.began = time.Now()
	a.bill.lie, _ = strconv.ParseFloat(a.env.get("SIMAGENT_USAGE_SCALE"), 64)
	a.emitInit()
	end := a.loop(ctx)
	if errors.Is(context.Cause(ctx), errTerminated) {
		return 143
	}
	a.out.result(end, a.bill, a.denials)
	return end.exit
}

// emitInit prints the first line.
func (a *agent) emitInit() {
	mode := a.opt.mode
	if a.opt.bypass() {
		mode = "bypassPermissions"
	}
	a.out.emit("system", event{
		"subtype": "init", "cwd": a.cwd, "tools": a.toolNames(), "mcp_servers": a.mcpServers(), "model": a.opt.model,
		"permissionMode": mode, "apiKeySource": a.client.keySource(), "claude_code_version": Version,
		"slash_commands": []string{}, "agents": []string{}, "skills": []string{},
	})
}

// loop alternates between the model and its tools until the model stops.
func (a *agent) loop(ctx context.Context) ending {
	if word, _, _ := strings.Cut(a.prompt, " "); strings.HasPrefix(word, "/") {
		return ending{subtype: "success", text: "Unknown command: " + strings.TrimSpace(word)}
	}
	a.session.add(message{Role: "user", Content: a.userContent()})
	if !a.client.loggedIn() {
		return a.failed(&failure{message: "Not logged in · Please run /login", header: http.Header{}}, 0)
	}
	a.client.warmUp(ctx)
	nudged := false
	for turn := 1; turn <= maxLoop; turn++ {
		if a.opt.maxTurns > 0 && turn > a.opt.maxTurns {
			return ending{
				subtype: "error_max_turns", isError: true, turns: turn, reason: "max_turns", exit: 1,
				errors: []string{fmt.Sprintf("Reached maximum number of turns (%d)", a.opt.maxTurns)},
			}
		}
		r, err := a.ask(ctx)
		if ctx.Err() != nil {
			return interrupted("aborted_streaming", turn+1, 0)
		}
		if err != nil {
			return a.failed(err, turn)
		}
		if end, over := a.overBudget(turn); over {
			return end
		}
		if !r.hasCall() {
			if a.opt.schema != "" && !nudged {
				nudged = true
				a.session.add(message{Role: "user", Content: []block{{Type: "text", Text: nudge}}})
				continue
			}
			return a.finished(r, turn)
		}
		if end, over := a.runTools(ctx, r, turn); over {
			return end
		}
	}
	return ending{subtype: "error_during_execution", isError: true, turns: maxLoop, exit: 1, errors: []string{"too many turns"}}
}

const nudge = "<system-reminder>Give your answer by calling the tool StructuredOutput.</system-reminder>"

// ask sends the conversation and adds the response to it.
func (a *agent) ask(ctx context.Context) (*reply, error) {
	began := time.Now()
	h := hooks{
		block: func(r *reply, b block) { a.out.assistant(r, b, "") },
		retry: func(attempt int, wait time.Duration, f *failure) {
			a.out.emit("system", event{
				"subtype": "api_retry", "attempt": attempt, "max_retries": a.client.retries,
				"retry_delay_ms": float64(wait) / float64(time.Millisecond), "error_status": orNull(f.status), "error": f.kind(),
			})
		},
	}
	if a.opt.partial {
		h.partial = func(ev json.RawMessage) {
			a.out.emit("stream_event", event{"event": ev, "parent_tool_use_id": nil})
		}
	}
	r, err := a.client.ask(ctx, body{
		Model: a.opt.model, MaxTokens: 32_000, System: a.system(), Messages: a.session.messages,
		Tools: a.toolList(), Metadata: map[string]string{"user_id": fmt.Sprintf(`{"session_id":%q}`, a.session.id)},
	}, h)
	a.bill.api += time.Since(began)
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	a.bill.add(a.opt.model, r.usage)
	if len(r.content) > 0 {
		a.session.add(message{ID: r.ID, Role: "assistant", Content: r.content})
	}
	if r.broken {
		a.out.assistant(r, block{Type: "text", Text: "API Error: the stream ended early"}, "server_error")
	}
	return r, nil
}

// runTools executes all calls of a response in order. over is true if the run ends here.
func (a *agent) runTools(ctx context.Context, r *reply, turn int) (end ending, over bool) {
	var results []block
	for _, b := range r.content {
		if b.Type != "tool_use" {
			continue
		}
		if b.Name == toolStructured && a.opt.schema != "" {
			res := toolResult(b.ID, "Structured output provided successfully", false)
			a.out.toolResult(res, nil)
			a.session.add(message{Role: "user", Content: append(results, res)})
			return ending{
				subtype: "success", turns: turn + 1, text: string(b.Input), structured: b.Input, stop: "end_turn", reason: "completed",
			}, true
		}
		out := a.runTool(ctx, b)
		if ctx.Err() != nil {
			out = outcome{text: "[Request interrupted by user for tool use]", isError: true, detail: "Error: interrupted"}
		}
		res := toolResult(b.ID, out.text, out.isError)
		a.out.toolResult(res, out.detail)
		results = append(results, res)
	}
	a.session.add(message{Role: "user", Content: results})
	if ctx.Err() != nil {
		return interrupted("aborted_tools", turn+1, 1), true
	}
	return ending{}, false
}

// runTool executes one call if it is allowed.
func (a *agent) runTool(ctx context.Context, b block) outcome {
	if why := a.forbidden(ctx, b); why != "" {
		if b.Name == toolBash || !strings.HasPrefix(why, "<") {
			a.denials = append(a.denials, denial{Tool: b.Name, ID: b.ID, Input: b.Input})
		}
		return outcome{text: why, isError: true, detail: "Error: " + why}
	}
	ctx, done := a.signals.duringTool(ctx)
	defer done()
	return a.call(ctx, b)
}

// interrupted returns the outcome after SIGINT.
func interrupted(reason string, turns, exit int) ending {
	return ending{
		subtype: "error_during_execution", isError: true, turns: turns, reason: reason, exit: exit,
		errors: []string{"[ede_diagnostic] interrupted"},
	}
}

// finished returns the outcome that the model chose.
func (a *agent) finished(r *reply, turns int) ending {
	end := ending{subtype: "success", turns: turns, text: r.text(), stop: r.stop, reason: "completed"}
	if r.stop == "refusal" {
		end.isError, end.exit, end.text = true, 1, "API Error: the model declined to answer this request"
		a.out.assistant(r, block{Type: "text", Text: end.text}, "invalid_request")
	}
	return end
}

// overBudget ends a run that has exceeded its budget.
func (a *agent) overBudget(turn int) (ending, bool) {
	if a.opt.maxUSD == 0 || a.bill.usd() <= a.opt.maxUSD {
		return ending{}, false
	}
	return ending{
		subtype: "error_max_budget_usd", isError: true, turns: turn, exit: 1,
		errors: []string{fmt.Sprintf("Reached maximum budget ($%g)", a.opt.maxUSD)},
	}, true
}

// userContent returns the prompt, followed by every file that it mentions as @path.
func (a *agent) userContent() []block {
	content := []block{{Type: "text", Text: a.prompt}}
	for _, m := range regexp.MustCompile(`(?:^|\s)@(\S+)`).FindAllStringSubmatch(a.prompt, 20) {
		data, err := os.ReadFile(absolute(m[1], a.cwd))
		if err != nil {
			continue
		}
		text := fmt.Sprintf("<system-reminder>Contents of %s:\n%s</system-reminder>", filepath.Clean(m[1]), data)
		content = append(content, block{Type: "text", Text: text})
	}
	return content
}
