package tether_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
)

// TestCallback: only the active run can call tools, and only for the task of the connection.
func TestCallback(t *testing.T) {
	t.Parallel()
	type heard struct{ task, tool, body string }
	for name, c := range map[string]struct {
		change func(*state.Task)
		token  func(*tether.Handler) string
		method string
		path   string
		want   int
	}{
		"the active run": {want: http.StatusOK},
		"the VM's token": {token: func(h *tether.Handler) string { return h.VMToken(vm) }, want: http.StatusUnauthorized},
		"another run":    {token: func(h *tether.Handler) string { return h.RunToken("7-1-3") }, want: http.StatusUnauthorized},
		"no token":       {token: func(*tether.Handler) string { return "" }, want: http.StatusUnauthorized},
		"a run that was stopped": {
			change: func(t *state.Task) { t.Run.State = state.RunStopping }, want: http.StatusUnauthorized,
		},
		"checks":          {change: func(t *state.Task) { t.Run.Kind = state.RunCheck }, want: http.StatusUnauthorized},
		"on another VM":   {change: func(t *state.Task) { t.Run.VM = "errand-7-1-2" }, want: http.StatusUnauthorized},
		"a GET request":   {method: http.MethodGet, want: http.StatusNotFound},
		"below a tool":    {path: "/callback/note/x", want: http.StatusNotFound},
		"out of its path": {path: "/callback/%2e%2e/git", want: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := someTask()
			if c.change != nil {
				c.change(task)
			}
			var got []heard
			w := newEnd(t, task, func(cfg *configs) {
				cfg.Callback = func(rw http.ResponseWriter, r *http.Request, t *state.Task, tool string) {
					body, _ := io.ReadAll(r.Body)
					got = append(got, heard{t.Key.String(), tool, string(body)})
				}
			})
			token := w.handler.RunToken(run)
			if c.token != nil {
				token = c.token(w.handler)
			}
			method, path := http.MethodPost, "/callback/note"
			if c.method != "" {
				method = c.method
			}
			if c.path != "" {
				path = c.path
			}
			req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader("words"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := webtest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Errorf("status %d, want %d", resp.StatusCode, c.want)
			}
			if ok := len(got) == 1; ok != (c.want == http.StatusOK) || ok && got[0] != (heard{"7/1", "note", "words"}) {
				t.Errorf("calls of tools: %v", got)
			}
		})
	}
}
