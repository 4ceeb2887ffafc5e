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
	streamGuess = 8 << 10   // of a stream, which is counted while it passes
	mostOutput  = 128 << 10 // of one answer, whatever the request says
	leastOutput = 1 << 10   // of an answer that is of use
)

// Bills reports whether an allowed call of a model costs something: counting tokens does not.
func (a API) Bills(path string) bool {
	return !strings.HasSuffix(path, "/count_tokens") && !strings.HasSuffix(path, ":countTokens")
}

// Ask is what an allowed call of a model asks for, as far as it bounds what the answer costs.
type Ask struct {
	// Usage is what the call may come to use, judged by its request alone: the input by its length, the output by the
	// bound that the request sets; of a stream, which can be cut, no more than a usual answer has.
	Usage
	// Most is how many tokens of output the answer has at most, whether it is streamed or not.
	Most int64
	// Least is how many it needs to be of use.
	Least int64
	// Streams reports whether the answer is a stream of events, which is counted while it passes.
	Streams bool
	// Unclear is something about the answer's length or count that two readers may read differently; nil if nothing is.
	Unclear *Extra

	body   []byte
	bounds []edit // each sets a bound of output: one that is there, or a new one
	usage  *edit  // has the stream of a chat say what it used; nil if it does
}

// Ask reads a call. It never fails: what cannot be read is not said.
func (a API) Ask(path string, query url.Values, body []byte) Ask {
	if !a.Bills(path) {
		return Ask{body: body}
	}
	q := Ask{body: body, Usage: Usage{Input: max(int64(len(body))/bytesPerToken, 1)}}
	w := a.wanted(path)
	_ = topLevel(body, w.take) // a list says nothing
	q.Model, q.Streams, q.Unclear = w.model, w.streams(), w.unclear
	if a == Gemini {
		q.Model, _ = a.Named(path, nil)
		sse := query["alt"] // nothing else that chooses a form is passed on
		q.Streams = len(sse) == 1 && sse[0] == "sse" && strings.HasSuffix(path, ":streamGenerateContent")
	}
	q.Most = w.most()
	q.Least = min(max(leastOutput, w.thinks+1), q.Most)
	if q.Output = q.Most; q.Streams {
		q.Output = min(q.Most, streamGuess)
	}
	q.bounds = w.bounds(body)
	if w.chat && w.mayStream {
		q.usage = w.askUsage(body)
	}
	return q
}

// wanted is what a request says about its answer.
type wanted struct {
	gemini, chat bool
	names        []string // by which a bound of output is known
	model        string
	stream       []byte // the value; nil if it is not said
	mayStream    bool   // some reader may take it for true
	thinks       int64  // tokens, of which an answer must have more
	said         []member
	options      *member // stream_options
	configs      []member
	seen         []string // keys that bound the cost, folded
	unclear      *Extra
}

// member is a key of an object, and its value at a place in the body.
type member struct {
	key   string
	value []byte
	at    int
}

func (a API) wanted(path string) *wanted {
	w := &wanted{gemini: a == Gemini, chat: a == OpenAI && strings.HasSuffix(path, "/chat/completions")}
	switch {
	case w.gemini:
		w.names = []string{"maxOutputTokens", "max_output_tokens"}
	case w.chat:
		w.names = []string{"max_completion_tokens", "max_tokens"}
	case a == OpenAI:
		w.names = []string{"max_output_tokens"}
	default:
		w.names = []string{"max_tokens"}
	}
	return w
}

// take reads one key of a request's outermost object.
func (w *wanted) take(key string, value []byte, at int) error {
	m := member{key, value, at}
	switch folded := fold(key); folded {
	case "model":
		_ = json.Unmarshal(value, &w.model) // what is no name is none
	case "thinking":
		var t struct {
			Budget float64 `json:"budget_tokens"`
		}
		if json.Unmarshal(value, &t) == nil {
			w.thinks = int64(min(max(t.Budget, 0), mostOutput))
		}
	case "stream":
		if w.gemini {
			break
		}
		w.once(m, "stream")
		w.stream = value
		w.mayStream = w.mayStream || string(value) != "false" && string(value) != "null"
	case "streamoptions":
		if w.chat {
			w.once(m, "stream_options")
			w.options = &m
		}
	case "generationconfig":
		if w.gemini {
			w.once(m, "generationConfig", "generation_config")
			w.configs = append(w.configs, m)
			w.inConfig(m)
		}
	default:
		if !w.gemini {
			w.bound(m, folded)
		}
	}
	return nil
}

// inConfig reads Gemini's generationConfig.
func (w *wanted) inConfig(config member) {
	if !bytes.HasPrefix(config.value, []byte("{")) {
		return
	}
	_ = topLevel(config.value, func(key string, value []byte, at int) error { // which is no list
		w.bound(member{key, value, config.at + at}, fold(key))
		return nil
	})
}

// bound keeps a bound of output, if the key is one.
func (w *wanted) bound(m member, folded string) {
	if slices.ContainsFunc(w.names, func(name string) bool { return fold(name) == folded }) {
		w.once(m, w.names...)
		w.said = append(w.said, m)
	}
}

// once notes a key that says something about the cost: it has to be there once, and written as the API has it.
func (w *wanted) once(m member, names ...string) {
	folded := fold(m.key)
	if w.unclear == nil && (slices.Contains(w.seen, folded) || !slices.Contains(names, m.key)) {
		w.unclear = &Extra{Name: m.key, Kind: ExtraUnclear}
	}
	if !slices.Contains(w.seen, folded) {
		w.seen = append(w.seen, folded)
	}
}

// streams reports whether every reader takes the answer for a stream.
func (w *wanted) streams() bool { return string(w.stream) == "true" && w.unclear == nil }

// most is how many tokens of output the request bounds its answer to. What is no bound to each reader is none.
func (w *wanted) most() (n int64) {
	if w.unclear != nil || len(w.said) == 0 {
		return mostOutput
	}
	for _, m := range w.said {
		bound := number(m.value)
		if bound == 0 {
			return mostOutput
		}
		n = max(n, bound)
	}
	return min(n, mostOutput)
}

// number reads a count, rounded up; 0 for anything else.
func number(value []byte) int64 {
	var f float64
	if json.Unmarshal(value, &f) != nil || !(f > 0) {
		return 0
	}
	return int64(math.Ceil(min(f, float64(most))))
}
