package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// redactBody returns the body of a request with all texts passed through Config.Redact. Exempt are reads, requests for
// tokens, the query of a GraphQL request, and the content and trees of commits, which the push gate has checked and
// whose IDs must not change. The name of a branch cannot be redacted, so a secret in it is an error.
func (t *transport) redactBody(req *http.Request, op *Operation, body []byte) ([]byte, error) {
	message := op.kind == kindData && strings.HasSuffix(req.URL.Path, "/git/commits")
	if t.redact == nil || len(body) == 0 || op.kind != kindWrite && !message || strings.HasSuffix(req.URL.Path, "/access_tokens") {
		return body, nil
	}
	var texts any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&texts); err != nil {
		return nil, fmt.Errorf("find secrets in a request to GitHub: %w", err)
	}
	r := redaction{redact: t.redact}
	if call, ok := texts.(map[string]any); ok && req.URL.Path == t.graphql {
		call["variables"] = r.redactValue("", call["variables"])
	} else {
		texts = r.redactValue("", texts)
	}
	switch {
	case r.ref:
		return nil, errSecretRef
	case !r.changed:
		return body, nil
	}
	t.log.Warn().Str(logOp, op.name).Msg("removed a secret from a request to GitHub")
	clean, err := json.Marshal(texts)
	if err != nil {
		return nil, fmt.Errorf("encode request to GitHub: %w", err)
	}
	return clean, nil
}

// errSecretRef means that the name of a branch contains a secret.
var errSecretRef = errors.New("the name of the branch contains a secret")

// redaction redacts the texts of one request.
type redaction struct {
	redact  func(string) string
	changed bool
	ref     bool // the name of a branch contains a secret
}

// redactValue redacts the value of a key of the request. The key of a reference is "ref" in REST and "name" in GraphQL.
func (r *redaction) redactValue(key string, v any) any {
	switch v := v.(type) {
	case string:
		clean := r.redact(v)
		if clean != v {
			r.changed = true
			r.ref = r.ref || (key == "ref" || key == "name") && strings.HasPrefix(v, "refs/")
		}
		return clean
	case []any:
		for i := range v {
			v[i] = r.redactValue(key, v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = r.redactValue(name, v[name])
		}
	}
	return v
}
