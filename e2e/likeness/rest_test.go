package likeness

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/record"
)

// rest checks answers against GitHub's OpenAPI description.
type rest struct {
	doc     map[string]any
	schemas *schemas
	strict  *strict
	routes  [][]string // of paths, as segments
	used    map[string]bool
	server  map[string]any // the paths of an Enterprise Server
}

// newREST returns a checker for a description, which it modifies. server is the description of an Enterprise Server.
func newREST(doc, server map[string]any) (*rest, error) {
	r := &rest{doc: doc, strict: &strict{doc: doc}, used: map[string]bool{}, server: object(server["paths"])}
	r.strict.apply()
	for p := range object(doc["paths"]) {
		r.routes = append(r.routes, strings.Split(strings.Trim(p, "/"), "/"))
	}
	var err error
	r.schemas, err = newSchemas("rest.json", doc)
	return r, err
}

// find returns the described path for a request, or "". Of several it returns the one with most literal segments.
func (r *rest) find(method, path string) string {
	have := strings.Split(strings.TrimPrefix(path, "/"), "/")
	best, found := -1, ""
	for _, want := range r.routes {
		n := fits(want, have)
		if n <= best {
			continue
		}
		p := "/" + strings.Join(want, "/")
		if dig(r.doc, "paths", p, strings.ToLower(method)) != nil {
			best, found = n, p
		}
	}
	return found
}

// fits returns the number of literal segments that match, or -1 if the path does not match. A variable for a path or a
// reference at the end matches the remaining segments.
func fits(want, have []string) int {
	n := 0
	for i, w := range want {
		if i >= len(have) {
			return -1
		}
		if !strings.HasPrefix(w, "{") {
			if w != have[i] {
				return -1
			}
			n++
			continue
		}
		if i == len(want)-1 && len(have) > len(want) && slices.Contains([]string{"{path}", "{ref}", "{branch}", "{basehead}", "{tree_sha}"}, w) {
			return n
		}
	}
	if len(want) != len(have) {
		return -1
	}
	return n
}

// judge returns the differences of a recorded answer, and of its request if accepted, from GitHub's description.
func (r *rest) judge(rec record.Record) ([]unlike, error) {
	path := r.find(rec.Method, rec.Path)
	where := fmt.Sprintf("%s %s %d", rec.Method, path, rec.Status)
	var out []unlike
	say := func(format string, args ...any) {
		out = append(out, unlike{where: where, what: fmt.Sprintf(format, args...)})
	}
	if path == "" {
		where = fmt.Sprintf("%s %s %d", rec.Method, rec.Path, rec.Status)
		if rec.Status < 400 {
			say("GitHub describes no such route")
			return out, nil
		}
	}
	r.used[rec.Method+" "+path] = true
	op := object(dig(r.doc, "paths", path, strings.ToLower(rec.Method)))
	for _, what := range headers(rec, op) {
		say("%s", what)
	}
	if app := rec.By == "app" || rec.By == "installation"; app && rec.Status < 300 && dig(r.server, path, strings.ToLower(rec.Method)) == nil {
		say("is not there at an Enterprise Server")
	}
	if rec.Status >= 400 && rec.Body != nil && !strings.Contains(string(rec.Body), `"message":"`) {
		say("an error without message")
	}
	found, err := r.answer(rec, path, op)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if rec.Status < 400 && rec.By != "user" { // errand never sends requests as a person; tests do
		asked, err := r.request(rec, path, op)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		found = append(found, asked...)
	}
	for _, what := range found {
		say("%s", what)
	}
	return out, nil
}

// answer checks status and body.
func (r *rest) answer(rec record.Record, path string, op map[string]any) ([]string, error) {
	status := strconv.Itoa(rec.Status)
	place := []string{"paths", path, strings.ToLower(rec.Method), "responses", status}
	resp := object(dig(r.doc, place...))
	if ref, ok := resp["$ref"].(string); ok {
		place = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		resp = object(r.strict.resolve(ref))
	}
	if resp == nil {
		return r.undescribed(rec)
	}
	content := object(resp["content"])
	switch {
	case rec.Body == nil && rec.Text == "":
		if content["application/json"] != nil && rec.Status != http.StatusNotModified {
			return []string{"the answer is empty"}, nil
		}
		return nil, nil
	case rec.Body == nil:
		return nil, nil // another format, requested by Accept
	case len(content) == 0 && rec.Status >= 400:
		return r.undescribed(rec)
	case len(content) == 0:
		return []string{"GitHub answers without a body"}, nil
	}
	for _, kind := range []string{"application/json", "application/scim+json"} {
		if content[kind] == nil {
			continue
		}
		body, err := parse(rec.Body)
		if err != nil {
			return nil, err
		}
		return r.schemas.judge(body, append(slices.Clone(place), "content", kind, "schema")...)
	}
	return []string{"GitHub answers with no JSON"}, nil
}

// undescribed checks answers with a status that the description of the route lacks, as it does most errors.
func (r *rest) undescribed(rec record.Record) ([]string, error) {
	name := "basic-error"
	switch {
	case rec.Status == http.StatusNotModified && rec.Body == nil && rec.Text == "":
		return nil, nil
	case rec.Status >= 301 && rec.Status <= 308 && strings.Contains(rec.Header.Get("Location"), "://") && rec.Body != nil:
		return nil, nil // any route of a renamed or moved repository
	case rec.Status < 400:
		return []string{"GitHub describes no such status"}, nil
	case rec.Status >= 500:
		return nil, nil
	case rec.Body == nil:
		return []string{"an error without JSON"}, nil
	case rec.Status == http.StatusUnprocessableEntity:
		name = "validation-error"
	}
	body, err := parse(rec.Body)
	if err != nil {
		return nil, err
	}
	return r.schemas.judge(body, "components", "schemas", name)
}

// request checks an accepted request: errand must not use parameters that GitHub does not know.
func (r *rest) request(rec record.Record, path string, op map[string]any) ([]string, error) {
	var out []string
	if rec.By == "installation" && dig(op, "x-github", "enabledForGitHubApps") == false {
		out = append(out, "is not open to installations")
	}
	known := map[string]bool{}
	for _, p := range list(op["parameters"]) {
		if ref, ok := object(p)["$ref"].(string); ok {
			p = r.strict.resolve(ref)
		}
		if dig(p, "in") == "query" {
			known[text(dig(p, "name"))] = true
		}
	}
	query, err := url.ParseQuery(rec.Query)
	if err != nil {
		return nil, fmt.Errorf("parse query: %w", err)
	}
	for name := range query {
		if !known[name] {
			out = append(out, "has no parameter "+name)
		}
	}
	slices.Sort(out)
	schema := dig(op, "requestBody", "content", "application/json", "schema")
	switch sent := strings.TrimSpace(string(rec.Request)); {
	case sent == "", sent == "null" && dig(op, "requestBody", "required") != true:
		return out, nil
	case schema == nil && sent != "{}":
		return append(out, "takes no body"), nil
	case schema == nil:
		return out, nil
	}
	body, err := parse(rec.Request)
	if err != nil {
		return nil, err
	}
	found, err := r.schemas.judge(body, "paths", path, strings.ToLower(rec.Method), "requestBody", "content", "application/json", "schema")
	for _, what := range found {
		out = append(out, "request: "+what)
	}
	return out, err
}

// headers checks the headers that every answer must have.
func headers(rec record.Record, op map[string]any) []string {
	var out []string
	want := []string{"X-Github-Request-Id", "X-Github-Media-Type"}
	if rec.Status < 300 || rec.Status == http.StatusNotModified {
		want = append(want, "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Used", "X-Ratelimit-Reset", "X-Ratelimit-Resource")
	}
	if rec.Status == http.StatusOK && rec.Method == http.MethodGet || rec.Status == http.StatusNotModified {
		want = append(want, "Etag")
	}
	for _, h := range want {
		if rec.Header.Get(h) == "" {
			out = append(out, "the answer lacks the header "+h)
		}
	}
	if rec.Body != nil && !strings.HasPrefix(rec.Header.Get("Content-Type"), "application/json") {
		out = append(out, "JSON is called "+rec.Header.Get("Content-Type"))
	}
	return out
}
