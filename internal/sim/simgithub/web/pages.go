package web

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

//go:embed *.html page.js style.css
var webFiles embed.FS

// site serves the pages. They are rendered on the server, need no external resources, and work without scripts. There
// is no login: a visitor chooses an account and acts with its permissions. So pages are for loopback addresses only.
type site struct {
	s    *simgithub.Sim
	log  zerolog.Logger
	tmpl *template.Template // as parsed; each answer uses a copy with the functions of its visit
	md   *markdown
	css  template.CSS
	js   template.JS

	mu     sync.Mutex
	drafts map[draftKey][]draft // comments of pending reviews
}

// parsePages parses the pages' templates once per process.
var parsePages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs((&visit{}).funcs()).ParseFS(webFiles, "*.html"))
})

// Handler returns the pages of a simulator, for Config.Pages.
func Handler(s *simgithub.Sim, log zerolog.Logger) http.Handler {
	css, _ := webFiles.ReadFile("style.css") // embedded, so it exists
	js, _ := webFiles.ReadFile("page.js")
	w := &site{
		s: s, log: log, md: sharedMarkdown(), css: template.CSS(css), js: template.JS(js), drafts: map[draftKey][]draft{},
		tmpl: parsePages(),
	}
	return w.routes()
}

// routes returns the table of pages and their forms. A form is posted to its page, with its name in the field "act".
func (w *site) routes() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range []struct {
		pattern string
		page    func(*visit) error
		acts    map[string]act // nil: no forms
	}{
		{"/{$}", w.homePage, nil},
		{"/_sim/as", nil, map[string]act{"as": actAs}},
		{"/_sim/people", w.peoplePage, peopleActs()},
		{"/_sim/deliveries", w.deliveriesPage, map[string]act{"redeliver": actRedeliver}},
		{"/_sim/calls", w.callsPage, nil},
		{"/_sim/version", w.versionPage, nil},
		{"/login/oauth/authorize", w.authorizePage, map[string]act{"authorize": actAuthorize, "deny": actDeny}},
		{"/github-apps/{slug}/installations/new", w.installPage, map[string]act{"install": actInstall}},
		{"/{login}", w.accountPage, nil},
		{"/{owner}/{repo}", w.repoPage, nil},
		{"/{owner}/{repo}/issues/new", w.newIssuePage, map[string]act{"open": actOpenIssue}},
		{"/{owner}/{repo}/issues/{n}", w.issuePage, issueActs()},
		{"/{owner}/{repo}/pull/{n}", w.pullPage, pullActs()},
		{"/{owner}/{repo}/pull/{n}/commits", w.pullCommitsPage, nil},
		{"/{owner}/{repo}/pull/{n}/files", w.pullFilesPage, nil},
		{"/{owner}/{repo}/commit/{sha}", w.commitPage, nil},
		{"/{owner}/{repo}/tree/{ref...}", w.treePage, nil},
		{"/{owner}/{repo}/blob/{ref...}", w.blobPage, nil},
		{"/{owner}/{repo}/runs/{id}", w.runPage, nil},
		{"/{owner}/{repo}/issues", w.listsPage, nil},
		{"/{owner}/{repo}/pulls", w.listsPage, nil},
	} {
		if rt.page != nil {
			mux.HandleFunc("GET "+rt.pattern, w.handle(rt.page))
		}
		if rt.acts != nil {
			mux.HandleFunc("POST "+rt.pattern, w.handle(func(v *visit) error { return v.do(rt.page, rt.acts) }))
		}
	}
	for _, pattern := range []string{"/settings/apps/new", "/organizations/{org}/settings/apps/new"} {
		mux.HandleFunc("POST "+pattern, w.handle(w.postNewApp))
	}
	mux.HandleFunc("/", w.handle(func(*visit) error { return notFound() }))
	return mux
}

// handle returns the handler of a page. Errors of the page are shown as a page, too.
func (w *site) handle(page func(*visit) error) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		v := w.visit(rw, r)
		err := page(v)
		if err == nil {
			return
		}
		status, text := refusal(err)
		if status == http.StatusInternalServerError {
			w.log.Error().Err(err).Str("path", r.URL.Path).Msg("failed to serve a page")
		}
		v.status, v.alert = status, text
		if err := v.render("refused", http.StatusText(status), nil); err != nil {
			w.log.Error().Err(err).Str("path", r.URL.Path).Msg("failed to render a page")
		}
	}
}

// The errors of the pages themselves.
func notFound() error { return &simgithub.Error{Status: http.StatusNotFound, Message: "Not Found"} }

func forbidden(message string) error {
	return &simgithub.Error{Status: http.StatusForbidden, Message: message}
}

func unprocessable(format string, args ...any) error {
	return &simgithub.Error{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf(format, args...)}
}

func invalid(resource, field, code string) error {
	return &simgithub.Error{
		Status: http.StatusUnprocessableEntity, Message: "Validation Failed",
		Fields: []simgithub.FieldError{{Resource: resource, Field: field, Code: code}},
	}
}

// itoa formats a number in decimal.
func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// refusal returns the status and the text of an error for people.
func refusal(err error) (status int, text string) {
	e, ok := err.(*simgithub.Error)
	if !ok {
		return http.StatusInternalServerError, "The simulator failed: " + err.Error()
	}
	text = e.Message
	for _, f := range e.Fields {
		switch {
		case f.Message != "":
			text += ". " + f.Message
		default:
			text += ". " + strings.TrimSpace(f.Field+" is "+strings.ReplaceAll(f.Code, "_", " "))
		}
	}
	return e.Status, text
}
