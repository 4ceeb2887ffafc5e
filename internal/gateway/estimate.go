package gateway

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
)

// How many tokens of output a call counts with before it has an answer: a stream is counted while it passes, any
// other answer only at its end.
const (
	streamGuess = 8 << 10
	wholeGuess  = 32 << 10  // where the request does not bound it
	mostOutput  = 128 << 10 // of one answer, whatever the request says
	mostAnswers = 128       // that one request may ask for at once
)

// Bills reports whether an allowed call of a model costs something: counting tokens does not.
func (a API) Bills(path string) bool {
	return !strings.HasSuffix(path, "/count_tokens") && !strings.HasSuffix(path, ":countTokens")
}

// Estimate is what an allowed call of a model may come to use, judged by its request alone: the input by its
// length, the output by the bound that the request sets. It never fails: what cannot be read is not said.
func (a API) Estimate(path string, query url.Values, body []byte) Usage {
	if !a.Bills(path) {
		return Usage{}
	}
	u := Usage{Input: max(int64(len(body))/bytesPerToken, 1)}
	var w wanted
	_ = topLevel(body, func(key string, value []byte) error { w.take(key, value); return nil }) // a list says nothing
	if u.Model = w.model; a == Gemini {
		u.Model, _ = a.Named(path, nil)
		sse := append(query["alt"], query["$alt"]...)
		w.stream = len(sse) == 1 && sse[0] == "sse" && strings.HasSuffix(path, ":streamGenerateContent") // else it is a list
	}
	u.Output = w.output()
	return u
}

// wanted is what a request says about its answer. Of a key that stands in it twice the dearer value counts.
type wanted struct {
	model         string
	stream, whole bool
	most, answers int64
}

// take reads one key of a request's outermost object, or of Gemini's generationConfig.
func (w *wanted) take(key string, value []byte) {
	switch key {
	case "model":
		_ = json.Unmarshal(value, &w.model) // what is no name is none
	case "stream":
		var on bool
		if json.Unmarshal(value, &on) == nil && on {
			w.stream = true
		} else {
			w.whole = true
		}
	case "max_tokens", "max_output_tokens", "max_completion_tokens", "maxOutputTokens":
		w.most = max(w.most, number(value))
	case "n", "candidateCount", "candidate_count":
		w.answers = max(w.answers, number(value))
	case "generationConfig", "generation_config":
		if bytes.HasPrefix(value, []byte("{")) {
			_ = topLevel(value, func(key string, value []byte) error {
				if key != "generationConfig" && key != "generation_config" {
					w.take(key, value)
				}
				return nil
			})
		}
	}
}

// output is how many tokens of answers to count with.
func (w *wanted) output() int64 {
	most := min(w.most, mostOutput)
	switch {
	case w.stream && !w.whole && (most == 0 || most > streamGuess):
		most = streamGuess
	case most == 0:
		most = wholeGuess
	}
	return most * min(max(w.answers, 1), mostAnswers)
}

// number reads a count, 0 for anything else.
func number(value []byte) int64 {
	var f float64
	if json.Unmarshal(value, &f) != nil || !(f > 0) {
		return 0
	}
	return int64(min(f, float64(most)))
}
