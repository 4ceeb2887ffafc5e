package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// redactBody returns the body of a request as it may be published: each text in it goes through Config.Redact,
// whatever call it is of. Left alone are questions, tokens, the query of a GraphQL call, which is ours, and the content
// and trees of commits, which the push gate has judged and which are held to their ids. The name of a branch cannot be
// redacted, and so must not need it.
func (t *transport) redactBody(req *http.Request, op *Operation, body []byte) ([]byte, error) {
	message := op.kind == kindData && strings.HasSuffix(req.URL.Path, "/git/commits")
	if t.redact == nil || len(body) == 0 || op.kind != kindWrite && !message || strings.HasSuffix(req.URL.Path, "/access_tokens") {
		return body, nil
	}
	var texts any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&texts); err != nil {
		return nil, fmt.Errorf("look for secrets in what is sent to GitHub: %w", err)
	}
	r := redaction{redact: t.redact}
	if call, ok := texts.(map[string]any); ok && req.URL.Path == t.graphql {
		call["variables"] = r.value("", call["variables"])
	} else {
		texts = r.value("", texts)
	}
	switch {
	case r.ref:
		return nil, errSecretRef
	case !r.changed:
		return body, nil
	}
	t.log.Warn().Str(logOp, op.name).Msg("a secret was taken out of what is sent to GitHub")
	clean, err := json.Marshal(texts)
	if err != nil {
		return nil, fmt.Errorf("encode what is sent to GitHub: %w", err)
	}
	return clean, nil
}

// errSecretRef says that a branch would tell a secret by its name.
var errSecretRef = errors.New("the name of the branch holds a secret")

// redaction goes through the texts of one request.
type redaction struct {
	redact  func(string) string
	changed bool
	ref     bool // a name of a branch would have to be changed
}

// value redacts what stands under a key of the request. References are named under "ref" by REST and "name" by GraphQL.
func (r *redaction) value(key string, v any) any {
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
			v[i] = r.value(key, v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = r.value(name, v[name])
		}
	}
	return v
}
