package modelapi

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Usage is the usage of an answer in tokens. Input does not include tokens that were read from a cache or written to
// one.
type Usage struct {
	Model                                string
	Input, CacheRead, CacheWrite, Output int64
	// CacheWriteHour is the part of CacheWrite that was written for an hour, which costs more.
	CacheWriteHour int64
}

func (u Usage) total() int64 { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// A payload has the fields of a body or an event of a stream that concern usage, for all APIs: their names do not
// collide.
type payload struct {
	Type         string          `json:"type"`
	Model        string          `json:"model"`
	ModelVersion string          `json:"modelVersion"` // Gemini
	Usage        *tokens         `json:"usage"`
	Message      *payload        `json:"message"`       // Anthropic: message_start
	Response     *payload        `json:"response"`      // OpenAI: response.completed and the like
	Gemini       *geminiUsage    `json:"usageMetadata"` // the latest counts
	Delta        json.RawMessage `json:"delta"`
	Choices      []choice        `json:"choices"`    // OpenAI's chat completions
	Candidates   []candidate     `json:"candidates"` // Gemini
	Error        json.RawMessage `json:"error"`
}

// tokens are Anthropic's and OpenAI's counts. OpenAI's input includes cached tokens, Anthropic's does not.
type tokens struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`

	Prompt     *int64 `json:"prompt_tokens"`
	Completion *int64 `json:"completion_tokens"`

	Creation *struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"` // Anthropic

	// Iterations are the answers that were generated for one call. The other counts do not include those that first
	// shortened the conversation.
	Iterations json.RawMessage `json:"iterations"` // Anthropic

	InputDetails  *details `json:"input_tokens_details"`
	PromptDetails *details `json:"prompt_tokens_details"`
}

type iteration struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
}

type details struct {
	Cached int64 `json:"cached_tokens"`
}

type geminiUsage struct {
	Prompt     int64 `json:"promptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
	ToolUse    int64 `json:"toolUsePromptTokenCount"`
}

// isFinal reports whether this event of a stream has the usage of the whole answer.
func (s *payload) isFinal() bool {
	switch {
	case s.Response != nil: // OpenAI: response.created has no usage yet
		return s.Response.Usage != nil && s.Response.Usage.Output != nil
	case s.Usage != nil: // Anthropic: message_delta; OpenAI's chat completions: their last chunk
		return s.Type == "message_delta" && s.Usage.Output != nil || s.Usage.Completion != nil
	case s.Gemini != nil:
		return slices.ContainsFunc(s.Candidates, func(c candidate) bool { return c.Finish != "" })
	}
	return false
}

// isError reports whether this event of a stream is an error instead of an answer.
func (s *payload) isError() bool {
	return s.Type == "error" || s.Type == "response.failed" || len(s.Error) > 0 && string(s.Error) != "null"
}

// update sets the counts that a payload has. The others stay unchanged, since later events of a stream repeat only some
// counts.
func (u *Usage) update(s *payload) (counted bool) {
	if s == nil {
		return false
	}
	u.Model = cmp.Or(s.Model, s.ModelVersion, u.Model)
	counted = u.update(s.Message)
	counted = u.update(s.Response) || counted
	if g := s.Gemini; g != nil {
		u.CacheRead = clamp(g.Cached)
		u.Input = max(clamp(g.Prompt)+clamp(g.ToolUse)-u.CacheRead, 0)
		u.Output, counted = clamp(g.Candidates)+clamp(g.Thoughts), true
	}
	if s.Usage != nil {
		u.setTokens(s.Usage)
		counted = true
	}
	return counted
}

func (u *Usage) setTokens(t *tokens) {
	set := func(to *int64, values ...*int64) {
		for _, v := range values {
			if v != nil {
				*to = clamp(*v)
			}
		}
	}
	set(&u.CacheRead, t.CacheRead)
	set(&u.CacheWrite, t.CacheWrite)
	if t.Creation != nil {
		u.CacheWriteHour = clamp(t.Creation.Hour)
	}
	u.CacheWriteHour = min(u.CacheWriteHour, u.CacheWrite)
	set(&u.Output, t.Output, t.Completion)
	set(&u.Input, t.Input, t.Prompt)
	var all Usage
	var iterations []iteration
	_ = json.Unmarshal(t.Iterations, &iterations) // anything but a list counts as empty
	for _, i := range iterations {
		all.Input, all.Output = clamp(all.Input+clamp(i.Input)), clamp(all.Output+clamp(i.Output))
		all.CacheWrite, all.CacheRead = clamp(all.CacheWrite+clamp(i.CacheWrite)), clamp(all.CacheRead+clamp(i.CacheRead))
	}
	u.Input, u.Output = max(u.Input, all.Input), max(u.Output, all.Output)
	u.CacheWrite, u.CacheRead = max(u.CacheWrite, all.CacheWrite), max(u.CacheRead, all.CacheRead)
	for _, d := range []*details{t.InputDetails, t.PromptDetails} {
		if d != nil {
			u.CacheRead = min(clamp(d.Cached), u.Input)
			u.Input -= u.CacheRead
		}
	}
}

// maxTokens is more than any answer uses. Higher counts are wrong.
const maxTokens = int64(1) << 40

func clamp(n int64) int64 { return min(max(n, 0), maxTokens) }
