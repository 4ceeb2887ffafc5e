package modelapi

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strings"
)

// How many tokens of output a call counts with before its answer is counted.
const (
	streamEstimate = 8 << 10   // of a stream, which is counted while it passes
	outputCeiling  = 128 << 10 // of one answer, whatever the request says
	usefulOutput   = 1 << 10   // of an answer that is of use
)

// IsBillable reports whether an allowed call of a model costs something: counting tokens does not.
func (a API) IsBillable(path string) bool {
	return !strings.HasSuffix(path, "/count_tokens") && !strings.HasSuffix(path, ":countTokens")
}

// Request is what an allowed call of a model asks for, as far as it bounds what the answer costs.
type Request struct {
	// Usage is what the call may come to use, judged by its request alone: the input by its length, the output by the
	// bound that the request sets; of a stream, which can be cut, no more than a usual answer has.
	Usage
	// MaxOutput is how many tokens of output the answer has at most, whether it is streamed or not.
	MaxOutput int64
	// MinOutput is how many it needs to be of use.
	MinOutput int64
	// Stream reports whether the answer is a stream of events, which is counted while it passes.
	Stream bool
	// Ambiguous is something about the answer's length or count that two readers may read differently; nil if nothing is.
	Ambiguous *Feature

	body        []byte
	limits      []edit // each sets a bound of output: one that is there, or a new one
	usageOption *edit  // has the stream of a chat say what it used; nil if it does
}

// ParseRequest reads a call. It never fails: what cannot be read is not said.
func (a API) ParseRequest(path string, query url.Values, body []byte) Request {
	if !a.IsBillable(path) {
		return Request{body: body}
	}
	q := Request{body: body, Usage: Usage{Input: max(int64(len(body))/bytesPerToken, 1)}}
	w := a.newRequestReader(path)
	_ = topLevel(body, w.readKey) // a list says nothing
	q.Model, q.Stream, q.Ambiguous = w.model, w.isStream(), w.ambiguous
	if a == Gemini {
		q.Model, _ = a.RequestedModel(path, nil)
		sse := query["alt"] // nothing else that chooses a form is passed on
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

// requestReader is what a request says about its answer.
type requestReader struct {
	gemini, chat   bool
	limitNames     []string // by which a bound of output is known
	model          string
	stream         []byte // the value; nil if it is not said
	mayStream      bool   // some reader may take it for true
	thinkingBudget int64  // tokens, of which an answer must have more
	outputLimits   []member
	options        *member // stream_options
	configs        []member
	costKeys       []string // keys that bound the cost, folded
	ambiguous      *Feature
}

// member is a key of an object, and its value at a place in the body.
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

// readKey reads one key of a request's outermost object.
func (w *requestReader) readKey(key string, value []byte, at int) error {
	m := member{key, value, at}
	switch folded := fold(key); folded {
	case "model":
		_ = json.Unmarshal(value, &w.model) // what is no name is none
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
	_ = topLevel(config.value, func(key string, value []byte, at int) error { // which is no list
		w.readLimit(member{key, value, config.at + at}, fold(key))
		return nil
	})
}

// readLimit keeps a bound of output, if the key is one.
func (w *requestReader) readLimit(m member, folded string) {
	if slices.ContainsFunc(w.limitNames, func(name string) bool { return fold(name) == folded }) {
		w.checkOnce(m, w.limitNames...)
		w.outputLimits = append(w.outputLimits, m)
	}
}

// checkOnce notes a key that says something about the cost: it has to be there once, and written as the API has it.
func (w *requestReader) checkOnce(m member, names ...string) {
	folded := fold(m.key)
	if w.ambiguous == nil && (slices.Contains(w.costKeys, folded) || !slices.Contains(names, m.key)) {
		w.ambiguous = &Feature{Name: m.key, Kind: FeatureAmbiguous}
	}
	if !slices.Contains(w.costKeys, folded) {
		w.costKeys = append(w.costKeys, folded)
	}
}

// isStream reports whether every reader takes the answer for a stream.
func (w *requestReader) isStream() bool { return string(w.stream) == "true" && w.ambiguous == nil }

// maxOutput is how many tokens of output the request bounds its answer to. What is no bound to each reader is none.
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

// parseCount reads a count, rounded up; 0 for anything else.
func parseCount(value []byte) int64 {
	var f float64
	if json.Unmarshal(value, &f) != nil || !(f > 0) {
		return 0
	}
	return int64(math.Ceil(min(f, float64(maxTokens))))
}
