package modelapi

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strings"
)

// Assumed output of a call in tokens, before its answer is counted.
const (
	streamEstimate = 8 << 10   // of a stream, which is counted while it is read
	outputCeiling  = 128 << 10 // the maximum of any answer
	usefulOutput   = 1 << 10   // the minimum of a useful answer
)

// IsBillable reports whether an allowed call costs something. Counting tokens does not.
func (a API) IsBillable(path string) bool {
	return !strings.HasSuffix(path, "/count_tokens") && !strings.HasSuffix(path, ":countTokens")
}

// A Request has the parameters of an allowed call that determine its possible cost.
type Request struct {
	// Usage is the estimated usage: the input by the request's length and images, the output by its limit. Of a stream, which can
	// be ended early, it is at most that of a usual answer.
	Usage
	// MaxOutput is the maximum output in tokens, streamed or not.
	MaxOutput int64
	// MinOutput is the minimum output of a useful answer in tokens.
	MinOutput int64
	// Stream is set if the answer is a stream of events.
	Stream bool
	// Ambiguous is a parameter that limits the cost and that different readers could read differently; nil if there is
	// none.
	Ambiguous *Feature

	body        []byte
	limits      []edit // each sets an output limit: an existing one, or a new one
	usageOption *edit  // requests the usage of a stream; nil if the request already does
}

// ParseRequest reads the parameters of a call. It never fails: a parameter that it cannot read counts as not set.
func (a API) ParseRequest(path string, query url.Values, body []byte) Request {
	if !a.IsBillable(path) {
		return Request{body: body}
	}
	q := Request{body: body, Usage: Usage{Input: a.inputTokens(body)}}
	w := a.newRequestReader(path)
	_ = topLevel(body, w.readKey) // a list has no parameters
	q.Model, q.Stream, q.Ambiguous = w.model, w.isStream(), w.ambiguous
	if a == Gemini {
		q.Model, _ = a.RequestedModel(path, nil)
		sse := query["alt"] // other parameters that select a format are not forwarded
		q.Stream = len(sse) == 1 && sse[0] == "sse" && strings.HasSuffix(path, ":streamGenerateContent")
	}
	q.MaxOutput = w.maxOutput()
	q.MinOutput = min(max(usefulOutput, w.thinkingBudget+1), q.MaxOutput)
	if q.Output = q.MaxOutput; q.Stream {
		q.Output = min(q.MaxOutput, streamEstimate)
	}
	q.limits = w.limitEdits(body)
	if w.chat && w.mayStream {
		q.usageOption = w.usageEdit(body)
	}
	return q
}

// A requestReader collects the parameters of a request that concern its answer.
type requestReader struct {
	gemini, chat   bool
	limitNames     []string // of the output limit in this API
	model          string
	stream         []byte // the value; nil if it is not set
	mayStream      bool   // some reader might treat it as true
	thinkingBudget int64  // in tokens; a useful output limit is larger
	outputLimits   []member
	options        *member // stream_options
	configs        []member
	costKeys       []string // keys that affect the cost, folded
	ambiguous      *Feature
}

// A member is a key and a value of an object, and the value's index in the body.
type member struct {
	key   string
	value []byte
	at    int
}

func (a API) newRequestReader(path string) *requestReader {
	w := &requestReader{gemini: a == Gemini, chat: a == OpenAI && strings.HasSuffix(path, "/chat/completions")}
	switch {
	case w.gemini:
		w.limitNames = []string{"maxOutputTokens", "max_output_tokens"}
	case w.chat:
		w.limitNames = []string{"max_completion_tokens", "max_tokens"}
	case a == OpenAI:
		w.limitNames = []string{"max_output_tokens"}
	default:
		w.limitNames = []string{"max_tokens"}
	}
	return w
}

// readKey reads one member of a request's outermost object.
func (w *requestReader) readKey(key string, value []byte, at int) error {
	m := member{key, value, at}
	switch folded := fold(key); folded {
	case "model":
		_ = json.Unmarshal(value, &w.model) // anything but a string counts as not set
	case "thinking":
		var t struct {
			Budget float64 `json:"budget_tokens"`
		}
		if json.Unmarshal(value, &t) == nil {
			w.thinkingBudget = int64(min(max(t.Budget, 0), outputCeiling))
		}
	case "stream":
		if w.gemini {
			break
		}
		w.checkOnce(m, "stream")
		w.stream = value
		w.mayStream = w.mayStream || string(value) != "false" && string(value) != "null"
	case "streamoptions":
		if w.chat {
			w.checkOnce(m, "stream_options")
			w.options = &m
		}
	case "generationconfig":
		if w.gemini {
			w.checkOnce(m, "generationConfig", "generation_config")
			w.configs = append(w.configs, m)
			w.readConfig(m)
		}
	default:
		if !w.gemini {
			w.readLimit(m, folded)
		}
	}
	return nil
}

// readConfig reads Gemini's generationConfig.
func (w *requestReader) readConfig(config member) {
	if !bytes.HasPrefix(config.value, []byte("{")) {
		return
	}
	_ = topLevel(config.value, func(key string, value []byte, at int) error { // never fails for an object
		w.readLimit(member{key, value, config.at + at}, fold(key))
		return nil
	})
}

// readLimit keeps an output limit, if the member is one.
func (w *requestReader) readLimit(m member, folded string) {
	if slices.ContainsFunc(w.limitNames, func(name string) bool { return fold(name) == folded }) {
		w.checkOnce(m, w.limitNames...)
		w.outputLimits = append(w.outputLimits, m)
	}
}

// checkOnce records a key that affects the cost. It must be unique, and spelled as in the API.
func (w *requestReader) checkOnce(m member, names ...string) {
	folded := fold(m.key)
	if w.ambiguous == nil && (slices.Contains(w.costKeys, folded) || !slices.Contains(names, m.key)) {
		w.ambiguous = &Feature{Name: m.key, Kind: FeatureAmbiguous}
	}
	if !slices.Contains(w.costKeys, folded) {
		w.costKeys = append(w.costKeys, folded)
	}
}

// isStream reports whether every reader treats the answer as a stream.
func (w *requestReader) isStream() bool { return string(w.stream) == "true" && w.ambiguous == nil }

// maxOutput returns the output limit of the request in tokens. A value that some reader might ignore is not a limit.
func (w *requestReader) maxOutput() (n int64) {
	if w.ambiguous != nil || len(w.outputLimits) == 0 {
		return outputCeiling
	}
	for _, m := range w.outputLimits {
		bound := parseCount(m.value)
		if bound == 0 {
			return outputCeiling
		}
		n = max(n, bound)
	}
	return min(n, outputCeiling)
}

// parseCount returns a positive number, rounded up, or 0 for anything else.
func parseCount(value []byte) int64 {
	var f float64
	if json.Unmarshal(value, &f) != nil || !(f > 0) {
		return 0
	}
	return int64(math.Ceil(min(f, float64(maxTokens))))
}
