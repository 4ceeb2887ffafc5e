package ci_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/forge/green"
)

// hugeLog serves a log of about size bytes whose failing step is at its end, and counts the bytes that were sent.
func hugeLog(size int, length, ranges bool) (http.HandlerFunc, *atomic.Int64) {
	line := stamped("02.1 " + strings.Repeat("noise ", 170))
	body := strings.Repeat(line, size/len(line)) + stamped("03.1 ##[group]Run make", "03.2 FAIL", "03.3 ##[error]exit code 1", "05.0 Post job cleanup.")
	var sent atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		from := 0
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err != nil || !ranges {
			from = 0
		}
		if length {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)-from))
		}
		if from > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(body)-1, len(body)))
			w.WriteHeader(http.StatusPartialContent)
		}
		for rest := body[from:]; rest != ""; {
			part := rest[:min(len(rest), 64<<10)]
			n, err := w.Write([]byte(part))
			sent.Add(int64(n))
			if err != nil {
				return
			}
			rest = rest[len(part):]
		}
	}, &sent
}

// The end of a huge log is found whether or not its host tells its length or serves parts.
func TestHugeLog(t *testing.T) {
	t.Parallel()
	steps := []m{step("Run make", "failure", "03", "04")}
	for name, host := range map[string]struct{ length, ranges bool }{
		"serves parts": {true, true}, "ignores the range": {true, false}, "tells no length": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeCI{steps: steps}
			serve, sent := hugeLog(20<<20, host.length, host.ranges)
			f.log = serve
			got := forgetest.Must(f.read(t))(t)
			want := green.Cause{Step: "Run make", Log: "##[group]Run make\nFAIL\n##[error]exit code 1", Cut: host.ranges}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if n := sent.Load(); host.ranges && n > 16<<20 { // the host may have begun to send the whole
				t.Errorf("%d bytes were sent", n)
			}
		})
	}
	t.Run("without end", func(t *testing.T) {
		t.Parallel()
		line := []byte(strings.Repeat("x", 64<<10-1) + "\n")
		f := &fakeCI{log: func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}}
		want := green.Cause{Note: "The log is larger than 128 MiB, so its end was not read."}
		if diff := cmp.Diff(want, forgetest.Must(f.read(t))(t)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("many lines of the step", func(t *testing.T) {
		t.Parallel()
		f := &fakeCI{steps: []m{step("Run make", "failure", "02", "03")}}
		f.log, _ = hugeLog(1<<20, true, false)
		got := forgetest.Must(f.read(t))(t)
		if len(got.Log) > green.MaxLog || len(got.Log) < green.MaxLog-1100 || !got.Cut || !strings.HasSuffix(got.Log, "\nFAIL\n##[error]exit code 1") || !strings.HasPrefix(got.Log, "noise ") {
			t.Errorf("got %d bytes, cut %t: %.80q", len(got.Log), got.Cut, got.Log)
		}
	})
}

// The log of a renamed repository is found, and its host gets no token, even if it is GitHub's.
func TestLogOfARenamedRepository(t *testing.T) {
	t.Parallel()
	g := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		switch path := strings.TrimPrefix(r.URL.Path, "/api/v3"); {
		case strings.HasPrefix(path, "/repos/"):
			w.Header().Set("Location", "/api/v3/repositories/70"+strings.TrimPrefix(path, "/repos/octo/app"))
			w.WriteHeader(http.StatusMovedPermanently)
			_ = json.NewEncoder(w).Encode(m{"message": "Moved Permanently"})
		case strings.HasSuffix(path, "/logs"):
			http.Redirect(w, r, "/log", http.StatusFound)
		case path == "/log":
			if r.Header.Get("Authorization") != "" {
				t.Error("a token was sent")
			}
			_, _ = w.Write([]byte("a log"))
		case strings.Contains(path, "/jobs/"):
			forgetest.Answer(w, http.StatusOK, m{"id": 7})
		default:
			forgetest.Answer(w, http.StatusOK, (&fakeCI{}).run(7))
		}
	})
	got := forgetest.Must(forgetest.New(t, g.URL).FailedCheck(t.Context(), forgetest.Repo(), failed(), true))(t)
	if got.Log != "a log" {
		t.Errorf("got %+v", got)
	}
}
