package simgithub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// maxRequest is the maximum length of a request's body.
const maxRequest = 64 << 20

// call is a REST request while it is handled, with the lock of the Sim.
type call struct {
	*session
	r      *http.Request
	vars   map[string]string
	body   []byte
	status int // of a success; default 200
	header http.Header
}

// handler returns the value to marshal as the answer, or nil for no content.
type handler func(c *call) (any, error)

// route is one row of the table of routes.
type route struct {
	method  string
	pattern string // segments; {name} takes one, {name...} takes the rest
	handle  handler
}

// answer is a finished response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// routes returns the handler of everything: API, git and LFS, the control of faults, and pages.
func (s *Sim) routes() (http.Handler, error) {
	gql, err := newGraphQL(s)
	if err != nil {
		return nil, err
	}
	table := restTable()
	mux := http.NewServeMux()
	serve := func(w http.ResponseWriter, r *http.Request) { s.rest.serve(w, r, table) }
	mux.HandleFunc("/api/v3/", s.records.Handler(serve, func(r *http.Request) string {
		rt, _, _ := match(table, r.Method, strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3"))
		return rt.pattern
	}))
	mux.HandleFunc("POST /api/graphql", s.records.Handler(gql.serve, func(*http.Request) string { return "" }))
	mux.HandleFunc("POST /login/oauth/access_token", s.serveUserToken)
	mux.HandleFunc("POST /_sim/faults", s.serveFaults)
	mux.HandleFunc("DELETE /_sim/faults", s.serveFaults)
	mux.HandleFunc("/_lfs/{repo}/{oid}/{action}", s.git.serveLFSTransfer)
	mux.HandleFunc("GET /user-attachments/assets/{id}", s.serveUpload)
	mux.HandleFunc("GET /user-attachments/files/{id...}", s.serveUpload)
	mux.HandleFunc("GET /_actions/logs/{id}", s.serveJobLog)
	mux.HandleFunc("GET /storage/user/{user}/files/{id}", s.serveUpload)
	pages := http.NotFoundHandler()
	if s.cfg.Pages != nil {
		pages = s.cfg.Pages(s, s.log)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if g, ok := git.ParseRequest(r); ok {
			s.git.serve(w, r, g)
			return
		}
		if git.IsLFS(r.URL.Path) {
			s.git.serveLFS(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
	return mux, nil
}

// restTable returns the routes below /api/v3.
func restTable() []route {
	var all []route
	for _, part := range [][]route{
		appRoutes(), userRoutes(), teamRoutes(), repoRoutes(), contentRoutes(), gitRoutes(), commitRoutes(), checkRoutes(), issueRoutes(),
		commentRoutes(), reactionRoutes(), labelRoutes(), relationRoutes(), pullRoutes(), reviewRoutes(), ruleRoutes(), actionRoutes(),
	} {
		all = append(all, part...)
	}
	return all
}

// match returns the route for a path. Literal segments win over variables, and earlier routes over later ones.
func match(table []route, method, path string) (route, map[string]string, bool) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	best, bestLiterals := -1, -1
	var bestVars map[string]string
	for n, rt := range table {
		if rt.method != method {
			continue
		}
		vars, literals, ok := matchPattern(rt.pattern, segments)
		if ok && literals > bestLiterals {
			best, bestLiterals, bestVars = n, literals, vars
		}
	}
	if best < 0 {
		return route{}, nil, false
	}
	return table[best], bestVars, true
}

func matchPattern(pattern string, segments []string) (vars map[string]string, literals int, ok bool) {
	want := strings.Split(strings.Trim(pattern, "/"), "/")
	vars = map[string]string{}
	for n, w := range want {
		name, variable := strings.CutPrefix(w, "{")
		name = strings.TrimSuffix(name, "}")
		if rest, all := strings.CutSuffix(name, "..."); variable && all {
			value, err := url.PathUnescape(strings.Join(segments[min(n, len(segments)):], "/"))
			vars[rest] = value
			return vars, literals, err == nil
		}
		if n >= len(segments) {
			return nil, 0, false
		}
		value, err := url.PathUnescape(segments[n])
		if err != nil || !variable && w != value || variable && value == "" {
			return nil, 0, false
		}
		if variable {
			vars[name] = value
		} else {
			literals++
		}
	}
	return vars, literals, len(want) == len(segments)
}

// serve serves a request: it applies faults, runs the handler, and applies faults again.
func (rs restServer) serve(w http.ResponseWriter, r *http.Request, table []route) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, `{"message":"Problems reading the body"}`, http.StatusBadRequest)
		return
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3")
	rt, vars, ok := match(table, r.Method, rs.byID(path))
	if !ok {
		rt = route{method: r.Method, pattern: "(unknown)", handle: func(*call) (any, error) { return nil, errNotFound() }}
	}
	f := rs.s.admit(r, rt.method+" "+rt.pattern, path)
	if f.before(w, r) {
		return
	}
	a := rs.perform(rt, &call{r: r, vars: vars, body: body, header: http.Header{}})
	if f.after(w, r) {
		return
	}
	a.write(w)
}

// perform runs a handler and marshals its answer, both with the lock of the Sim.
func (rs restServer) perform(rt route, c *call) answer {
	rs.s.mu.Lock()
	defer rs.s.mu.Unlock()
	c.session = rs.s.auth.session(c.r)
	c.header.Set("Content-Type", "application/json; charset=utf-8")
	if c.bad != nil {
		return c.failed(c.bad)
	}
	if err := c.quota().spend("core", rt.pattern == "/rate_limit", c.header); err != nil {
		return c.failed(err)
	}
	if err := c.quota().throttle(rt.method, rt.pattern); err != nil {
		return c.failed(err)
	}
	if a, ok := c.redirect(); ok {
		return a
	}
	out, err := rt.handle(c)
	if err != nil {
		return c.failed(err)
	}
	a := c.finish(c.withHTML(out))
	if a.status == http.StatusNotModified {
		c.quota().refund("core", a.header)
	}
	return a
}

// finish marshals a success, or answers 304 if the client has it already.
func (c *call) finish(out any) answer {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	a := answer{status: c.status, header: c.header}
	switch v := out.(type) {
	case nil:
		if a.status == http.StatusOK {
			a.status = http.StatusNoContent
		}
		return a
	case []byte:
		a.body = v
	default:
		body, err := json.Marshal(v)
		if err != nil {
			return c.failed(err)
		}
		a.body = body
	}
	if c.r.Method == http.MethodGet {
		sum := sha256.Sum256([]byte(c.r.Header.Get("Accept") + ":" + c.r.Header.Get("Authorization") + ":" + string(a.body)))
		etag := `W/"` + hex.EncodeToString(sum[:]) + `"`
		a.header.Set("ETag", etag)
		if c.r.Header.Get("If-None-Match") == etag {
			return answer{status: http.StatusNotModified, header: a.header}
		}
	}
	return a
}

// failed returns an error in GitHub's format. An error that is no *Error becomes a 500 and is logged.
func (c *call) failed(err error) answer {
	var e *Error
	if !errors.As(err, &e) {
		c.s.log.Error().Err(err).Str("path", c.r.URL.Path).Msg("failed to serve a request")
		e = &Error{Status: http.StatusInternalServerError, Message: "Server Error"}
	}
	for k, v := range e.Header {
		c.header[k] = v
	}
	return answer{status: e.Status, header: c.header, body: e.json()}
}

func (e *Error) json() []byte {
	o := obj{"message": e.Message, "documentation_url": e.DocURL, "status": strconv.Itoa(e.Status)}
	if e.DocURL == "" {
		o["documentation_url"] = "https://docs.github.com/rest"
	}
	if len(e.Fields) > 0 {
		o["errors"] = e.Fields
	}
	body, _ := json.Marshal(o) // cannot fail: strings and plain values only
	return body
}

func (a answer) write(w http.ResponseWriter) {
	for k, v := range a.header {
		w.Header()[k] = v
	}
	identify(w.Header())
	if len(a.body) == 0 {
		w.Header().Del("Content-Type")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client has disconnected
}

// identify sets the headers that every answer has.
func identify(h http.Header) {
	h.Set("X-GitHub-Request-Id", strings.ToUpper(uuid.NewString()[:18]))
	h.Set("X-GitHub-Media-Type", "github.v3; format=json")
	h.Set("X-GitHub-Api-Version-Selected", "2022-11-28")
}
