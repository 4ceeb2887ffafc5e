package modelapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// ErrNoModel is wrapped by every error of RequestedModel.
var ErrNoModel = errors.New("the requested model cannot be determined")

// IsCall reports whether an allowed request calls a model, so that it has to name one.
func (a API) IsCall(method string) bool { return method == http.MethodPost }

// RequestedModel returns the name of the model that an allowed request calls. Gemini has it in the path, the other APIs
// in the body, which is valid JSON or empty. Different readers must not read different names, so the body must be an
// object with that key exactly once, and without models to fall back on; otherwise the error wraps ErrNoModel.
func (a API) RequestedModel(path string, body []byte) (string, error) {
	if a == Gemini {
		_, rest, _ := strings.Cut(path, "/models/")
		name, _, ok := strings.Cut(rest, ":")
		if !ok || name == "" {
			return "", fmt.Errorf("%w: the path names none", ErrNoModel)
		}
		return name, nil
	}
	name, found := "", 0
	err := topLevel(body, func(key string, value []byte, _ int) error {
		switch strings.ToLower(key) {
		case "model":
			found++
			if key != "model" || json.Unmarshal(value, &name) != nil || name == "" {
				return fmt.Errorf("%w: the body's %q is not a name", ErrNoModel, key)
			}
		case "models", "fallbacks", "fallback_models", "context_window_fallbacks", "content_policy_fallbacks":
			return fmt.Errorf("%w: the body has %q, which may select other models", ErrNoModel, key)
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case found != 1:
		return "", fmt.Errorf("%w: the body has %d keys for it", ErrNoModel, found)
	}
	return name, nil
}

// topLevel calls see with each key and value of the outermost object of valid JSON, and the index at which the value
// begins. It reads each byte once, and skips strings faster, because the conversation in a body may have some
// megabytes.
func topLevel(body []byte, see func(key string, value []byte, at int) error) error {
	depth, key, begin := 0, "", -1
	end := func(i int) error {
		if depth != 1 || begin < 0 {
			return nil
		}
		value := bytes.TrimLeft(body[begin:i], " \t\r\n")
		at := i - len(value)
		begin = -1
		return see(key, bytes.TrimRight(value, " \t\r\n"), at)
	}
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			last := stringEnd(body, i)
			if depth == 1 && begin < 0 { // a key: values begin after their colon
				if err := json.Unmarshal(body[i:last+1], &key); err != nil {
					return fmt.Errorf("%w: %w", ErrNoModel, err)
				}
			}
			i = last
		case ':':
			if depth == 1 && begin < 0 {
				begin = i + 1
			}
		case '{', '[':
			if depth == 0 && body[i] == '[' {
				return fmt.Errorf("%w: the body is a list", ErrNoModel)
			}
			depth++
		case ',':
			if err := end(i); err != nil {
				return err
			}
		case '}', ']':
			if err := end(i); err != nil {
				return err
			}
			depth--
		}
	}
	return nil
}

// stringEnd returns the index of the quote that ends the string at index i.
func stringEnd(body []byte, i int) int {
	for j := i + 1; j < len(body); {
		n := bytes.IndexByte(body[j:], '"')
		if n < 0 {
			break
		}
		j += n
		slashes := 0
		for k := j - 1; k > i && body[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return j
		}
		j++
	}
	return len(body) - 1
}

var (
	dated   = regexp.MustCompile(`^[-@]\d{8}$`)
	edition = regexp.MustCompile(`\[[A-Za-z0-9]{1,8}\]$`)
	alias   = regexp.MustCompile(`^[a-z]{3,12}$`)
)

// SameModel reports whether the model in a request is the one in the configuration. The request may add a date
// (model-20260115). The configuration may add the size of the context (model[1m]) or the provider (provider/model), or
// be an alias of one word (opus: claude-opus-4-8).
func SameModel(configured, named string) bool {
	want := edition.ReplaceAllString(configured, "")
	if named == configured || named == want {
		return true
	}
	if rest, ok := strings.CutPrefix(named, want); ok && dated.MatchString(rest) {
		return true
	}
	if _, short, ok := strings.Cut(want, "/"); ok && named == short {
		return true
	}
	if !alias.MatchString(want) {
		return false
	}
	for i, part := range strings.Split(named, "-") {
		if i > 0 && part == want {
			return true
		}
	}
	return false
}
