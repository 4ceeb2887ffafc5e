package record

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
)

func TestAnswersOfOneShapeAreRecordedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := New(dir, zerolog.Nop(), func(*http.Request) string { return "app" })
	if err != nil {
		t.Fatal(err)
	}
	h := b.Handler(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("fault") {
			Discard(w)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}, func(*http.Request) string { return "/things" })
	for _, body := range []string{`{"id":1}`, `{"id":2}`, `{"id":"x"}`, `{"state":"open"}`, `{"state":"closed"}`, `{"state":"open"}`} {
		h(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v3/things", strings.NewReader(body)))
	}
	h(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v3/things?fault", strings.NewReader(`[]`)))
	b.Webhook("issues", http.Header{}, []byte(`{"action":"opened"}`))
	b.Webhook("issues", http.Header{}, []byte(`{"action":"opened"}`))
	b.Webhook("issues", http.Header{}, []byte(`{"action":"closed"}`))
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r Record
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		got[strings.TrimSpace(r.Kind+" "+r.By)]++
	}
	if diff := cmp.Diff(map[string]int{"rest app": 4, "webhook": 2}, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestWithoutFolderNothingIsRecorded(t *testing.T) {
	t.Parallel()
	b, err := New("", zerolog.Nop(), nil)
	if err != nil || b != nil {
		t.Fatalf("got recorder %v, %v", b, err)
	}
	b.Webhook("issues", nil, []byte(`{}`))
	called := false
	b.Handler(func(http.ResponseWriter, *http.Request) { called = true }, nil)(nil, nil)
	if !called {
		t.Error("the handler was not called")
	}
}
