package likeness

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/record"
)

// TestControls plants faults into the simulator's answers and expects each of them to be reported, because a check that
// accepts everything would also pass.
func TestControls(t *testing.T) {
	t.Parallel()
	j := newJudges(t)
	good := recordAnswers(t)
	allowed := newAllowances(exceptions())
	for name, rec := range good {
		for _, u := range judged(t, j, rec) {
			if !allowed.allows(u) {
				t.Errorf("%s, as sent by the simulator: %s", name, u)
			}
		}
	}
	for name, c := range map[string]struct {
		of   string
		harm func(r *record.Record)
		want string
	}{
		"a field is missing":           {"issue", body("title", nil), "missing property 'title'"},
		"a field has another type":     {"issue", body("number", "one"), "got string, want integer"},
		"an unknown field":             {"issue", body("priority", "high"), "/priority " + unknown},
		"an unknown nested field":      {"issue", inside("user", "mood", "good"), "/user/mood " + unknown},
		"an unknown enum value":        {"issue", body("author_association", "FRIEND"), "FRIEND is none of"},
		"an invalid time":              {"issue", body("created_at", "yesterday"), "is not valid date-time"},
		"another status":               {"issue", func(r *record.Record) { r.Status = 206 }, "no such status"},
		"no such route":                {"issue", func(r *record.Record) { r.Path += "/mood" }, "no such route"},
		"a header is missing":          {"issue", func(r *record.Record) { r.Header.Del("X-RateLimit-Used") }, "lacks the header X-Ratelimit-Used"},
		"no ETag":                      {"issue", func(r *record.Record) { r.Header.Del("ETag") }, "lacks the header Etag"},
		"an error without message":     {"lost", body("message", nil), "an error without message"},
		"a query that is not known":    {"issue", func(r *record.Record) { r.Query = "mood=good" }, "has no parameter mood"},
		"a request without its field":  {"comment", request("body", nil), "missing property 'body'"},
		"a webhook without a field":    {"webhook", body("issue", nil), "missing property 'issue'"},
		"a webhook with an invented":   {"webhook", inside("issue", "priority", "high"), "/issue/priority " + unknown},
		"a webhook's unknown action":   {"webhook", body("action", "admired"), "no such webhook"},
		"an unsigned webhook":          {"webhook", func(r *record.Record) { r.Header.Del("X-Hub-Signature-256") }, "lacks the header X-Hub-Signature-256"},
		"a query of an unknown field":  {"graphql", request("query", `{ viewer { login mood } }`), `Cannot query field "mood"`},
		"an answer without the field":  {"graphql", inside2("data", "viewer", "login", nil), "was asked for and is not there"},
		"an answer with another field": {"graphql", inside2("data", "viewer", "mood", "good"), "was not asked for"},
		"an answer of another kind":    {"graphql", inside2("data", "viewer", "login", 7), "is no String"},
	} {
		rec, ok := good[c.of]
		if !ok {
			t.Fatalf("%s was not recorded", c.of)
		}
		rec.Header, rec.By = rec.Header.Clone(), "nobody" // requests by people are not checked
		c.harm(&rec)
		var said strings.Builder
		for _, u := range judged(t, j, rec) {
			said.WriteString(u.String() + "\n")
		}
		if !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: want %q, got:\n%s", name, c.want, said.String())
		}
	}
}

func judged(t *testing.T, j *judges, rec record.Record) []unlike {
	t.Helper()
	found, err := j.judge(rec)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// body changes a field of an answer; nil removes it.
func body(key string, value any) func(*record.Record) {
	return func(r *record.Record) { r.Body = changed(r.Body, value, key) }
}

func inside(key, inner string, value any) func(*record.Record) {
	return func(r *record.Record) { r.Body = changed(r.Body, value, key, inner) }
}

func inside2(keys ...any) func(*record.Record) {
	return func(r *record.Record) {
		r.Body = changed(r.Body, keys[3], keys[0].(string), keys[1].(string), keys[2].(string))
	}
}

// request changes a field of a request.
func request(key string, value any) func(*record.Record) {
	return func(r *record.Record) { r.Request = changed(r.Request, value, key) }
}

func changed(raw json.RawMessage, value any, keys ...string) json.RawMessage {
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(err)
	}
	at := v
	for _, k := range keys[:len(keys)-1] {
		at = at[k].(map[string]any)
	}
	last := keys[len(keys)-1]
	if value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// recordAnswers lets the simulator send one answer of each kind, and returns the recordings.
func recordAnswers(t *testing.T) map[string]record.Record {
	t.Helper()
	dir := t.TempDir()
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key(), Record: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sim.Close() }()
	base, err := sim.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "slug", Files: map[string]string{"README.md": "# slug\n"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Install("acme/slug"); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.As("acme").OpenIssue("acme/slug", simgithub.NewIssue{Title: "It breaks", Body: "Always."}); err != nil {
		t.Fatal(err)
	}
	token := sim.AddUser("acme").Token
	ask(t, token, http.MethodGet, base+"/api/v3/repos/acme/slug/issues/1", "")
	ask(t, token, http.MethodGet, base+"/api/v3/repos/acme/slug/issues/9", "")
	ask(t, token, http.MethodPost, base+"/api/v3/repos/acme/slug/issues/1/comments", `{"body":"Hello."}`)
	ask(t, token, http.MethodPost, base+"/api/graphql", `{"query":"{ viewer { login } }"}`)
	if err := sim.WaitHooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	return named(t, dir)
}

func ask(t *testing.T, token, method, url, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Client{Transport: webtest.Transport(), Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if _ = resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

// named gives the recordings names.
func named(t *testing.T, dir string) map[string]record.Record {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]record.Record{}
	for _, n := range names {
		rec := read(t, n)
		switch {
		case rec.Kind == "graphql":
			out["graphql"] = rec
		case rec.Event == "issues":
			out["webhook"] = rec
		case rec.Method == http.MethodPost:
			out["comment"] = rec
		case rec.Status == http.StatusNotFound:
			out["lost"] = rec
		case rec.Method == http.MethodGet:
			out["issue"] = rec
		}
	}
	return out
}
