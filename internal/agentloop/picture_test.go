package agentloop_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

const png = "\x89PNG\r\n\x1a\n"

// attach writes files to the directory of attachments, and returns the settings of a run that has it.
func (w *world) attach(files map[string]string) wire.Settings {
	w.t.Helper()
	set := w.settings()
	set.Session, set.Attachments = idA, filepath.Join(w.t.TempDir(), "attachments")
	if err := os.MkdirAll(set.Attachments, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(set.Attachments, name), []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return set
}

func view(path string) simmodel.Call {
	return simmodel.Call{Name: wire.ToolEdit, Input: map[string]any{"command": "view", "path": path}}
}

// pictures returns the pictures in the results of tools of a request, as MEDIA:CONTENT.
func pictures(t *testing.T, body []byte) (out []string) {
	t.Helper()
	var in struct {
		Messages []struct {
			Content []struct {
				Type    string
				Content []struct {
					Type   string
					Source struct {
						Type  string
						Media string `json:"media_type"`
						Data  []byte
					}
				}
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	for _, m := range in.Messages {
		for _, b := range m.Content {
			for _, c := range b.Content {
				if b.Type == "tool_result" && c.Type == "image" && c.Source.Type == "base64" {
					out = append(out, c.Source.Media+":"+string(c.Source.Data))
				}
			}
		}
	}
	return out
}

// TestModelSeesViewedPictures: the model gets each image that it views, in the next request and when the session is resumed;
// the run's output has none of their bytes.
func TestModelSeesViewedPictures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "replaced below"})
	set := w.attach(map[string]string{"a.png": png + "one", "b.gif": "GIF89a two"})
	at := func(name string) string { return filepath.Join(set.Attachments, name) }
	if err := w.sim.SetScript(simmodel.Script{Rules: []simmodel.Rule{{Turns: []simmodel.Turn{
		{Tools: []simmodel.Call{view(at("a.png")), view(at("b.gif"))}}, {Text: "Seen."},
	}}}}); err != nil {
		t.Fatal(err)
	}
	lines, r := w.run(t.Context(), set, "look")
	w.need(r, wire.CauseOK)
	want := "image/png:" + png + "one, image/gif:GIF89a two"
	if got := strings.Join(pictures(t, []byte(w.lastBody())), ", "); got != want {
		t.Errorf("the model got %q, want %q", got, want)
	}
	for _, l := range lines {
		if l.Type == wire.TypeToolResult && (l.IsError || !strings.Contains(l.Text, ", ") || strings.Contains(l.Text, base64.StdEncoding.EncodeToString([]byte(png)))) {
			t.Errorf("line %+v", l)
		}
	}
	set.Session, set.Resume = "", idA
	_, r = w.run(t.Context(), set, "look again")
	w.need(r, wire.CauseOK)
	if got := strings.Join(pictures(t, []byte(w.lastBody())), ", "); !strings.HasPrefix(got, want) {
		t.Errorf("after the session was resumed, the model got %q, want %q", got, want)
	}
}

// TestRefusedPictureIsRemoved: if the API refuses a picture, the conversation continues without it, with the reason in its
// place, and so does a session that is resumed.
func TestRefusedPictureIsRemoved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status  int
		message string
		cause   string
	}{
		"unreadable":       {http.StatusBadRequest, "Could not process image", wire.CauseOK},
		"too large":        {http.StatusRequestEntityTooLarge, "Request exceeds the maximum size", wire.CauseOK},
		"another reason":   {http.StatusNotFound, "model: claude-x", wire.CauseInvalid},
		"no money is left": {http.StatusBadRequest, "Your credit balance is too low", wire.CauseBilling},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simmodel.Turn{Text: "replaced below"})
			set := w.attach(map[string]string{"a.png": png})
			if err := w.sim.SetScript(simmodel.Script{Rules: []simmodel.Rule{{Turns: []simmodel.Turn{
				{Tools: []simmodel.Call{view(filepath.Join(set.Attachments, "a.png"))}}, {Text: "Not seen."},
			}}}}); err != nil {
				t.Fatal(err)
			}
			refused := 0
			web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if len(pictures(t, body)) > 0 {
					refused++
					rw.WriteHeader(tc.status)
					_, _ = io.WriteString(rw, `{"type":"error","error":{"type":"invalid_request_error","message":"`+tc.message+`"}}`)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				w.sim.ServeHTTP(rw, r)
			}))
			defer web.Close()
			set.BaseURL = web.URL
			_, r := w.run(t.Context(), set, "look")
			w.need(r, tc.cause)
			if tc.cause != wire.CauseOK {
				return
			}
			if !strings.Contains(w.lastBody(), "refused it: "+tc.message) || refused != 1 {
				t.Errorf("refused %d times; the last request: %s", refused, w.lastBody())
			}
			set.Session, set.Resume = "", idA
			_, r = w.run(t.Context(), set, "go on")
			w.need(r, wire.CauseOK)
			if !strings.Contains(w.lastBody(), "refused it: "+tc.message) || refused > 2 {
				t.Errorf("after the session was resumed, refused %d times; the last request: %s", refused, w.lastBody())
			}
		})
	}
}

// TestModelWithoutPicturesContinues: a session with pictures can be resumed with a model that takes none.
func TestModelWithoutPicturesContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "replaced below"})
	set := w.attach(map[string]string{"a.png": png})
	if err := w.sim.SetScript(simmodel.Script{Rules: []simmodel.Rule{
		{Match: "^look", Turns: []simmodel.Turn{{Tools: []simmodel.Call{view(filepath.Join(set.Attachments, "a.png"))}}, {Text: "Seen."}}},
		{Turns: []simmodel.Turn{{Text: "Understood."}}},
	}}); err != nil {
		t.Fatal(err)
	}
	_, r := w.run(t.Context(), set, "look")
	w.need(r, wire.CauseOK)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if len(pictures(t, body)) > 0 {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.sim.ServeHTTP(rw, r)
	}))
	defer web.Close()
	set.BaseURL, set.Session, set.Resume = web.URL, "", idA
	_, r = w.run(t.Context(), set, "go on")
	w.need(r, wire.CauseOK)
	if r.Text != "Understood." || !strings.Contains(w.lastBody(), "a.png: image/png") {
		t.Errorf("result %+v, last request %s", r, w.lastBody())
	}
}

// TestPicturesAreLimited: a picture for which the conversation has no room is not shown, and smaller ones are.
func TestPicturesAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "replaced below"})
	large := png + strings.Repeat(".", 3000-len(png)) // 4000 bytes in base64
	set := w.attach(map[string]string{"1.png": large, "2.png": large, "3.png": large, "4.png": png})
	at := func(name string) simmodel.Call { return view(filepath.Join(set.Attachments, name)) }
	if err := w.sim.SetScript(simmodel.Script{Rules: []simmodel.Rule{{Turns: []simmodel.Turn{
		{Tools: []simmodel.Call{at("1.png")}}, {Tools: []simmodel.Call{at("2.png"), at("3.png"), at("4.png")}}, {Text: "Seen."},
	}}}}); err != nil {
		t.Fatal(err)
	}
	w.options.PictureBytes = 8012
	_, r := w.run(t.Context(), set, "look")
	w.need(r, wire.CauseOK)
	if got := pictures(t, []byte(w.lastBody())); len(got) != 3 || got[2] != "image/png:"+png || !strings.Contains(w.lastBody(), "at most 8012 bytes") {
		t.Errorf("the model got %d pictures: %.300q", len(got), got)
	}
}
