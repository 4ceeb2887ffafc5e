package event

import (
	"time"

	"github.com/errand-bot/errand/state"
)

// The payloads of reports about runs, by their supervisor or the gateway.
type (
	// Progress is the last activity of a run, at most one every few seconds.
	Progress struct {
		LastSeq      int64       `json:"last_seq"`
		Session      string      `json:"session,omitempty"`
		Model        string      `json:"model,omitempty"`
		Doing        string      `json:"doing,omitempty"`
		Turns        int         `json:"turns,omitempty"`
		Money        state.Money `json:"money"`
		LastActivity time.Time   `json:"sign"`
		Between      bool        `json:"between,omitempty"` // the agent executes no tool
	}

	// RunEnded is the end of a run.
	RunEnded struct {
		Result state.RunResult `json:"result"`
	}

	// ToolCalled is a call of one of errand's tools by a run's agent.
	ToolCalled struct {
		Call state.Call `json:"call"`
	}

	// ModelCalled is a charge by the gateway for an answer of the model, or the denial of a call.
	ModelCalled struct {
		Money   state.Money    `json:"money"`
		Waiting *state.Waiting `json:"waiting,omitempty"` // why the call was denied
	}
)
