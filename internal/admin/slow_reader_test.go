package admin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// slowReader is the connection of a client that takes a tenth of a second for each part of an answer.
type slowReader struct {
	*httptest.ResponseRecorder
	parts, deadlines int
	part             func(n int) // called for each part
}

func (s *slowReader) Write(b []byte) (int, error) {
	s.parts++
	s.part(s.parts)
	time.Sleep(100 * time.Millisecond) // of the bubble's clock
	return s.ResponseRecorder.Write(b)
}

func (s *slowReader) SetWriteDeadline(time.Time) error {
	s.deadlines++
	return nil
}

// slowly requests a page of a person with a slow reader.
func (p *peopled) slowly(b *browser, path string, part func(n int)) *slowReader {
	p.t.Helper()
	s := &slowReader{ResponseRecorder: httptest.NewRecorder(), part: part}
	synctest.Test(p.t, func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.AddCookie(&http.Cookie{Name: session, Value: b.jar[session]})
		p.pages.ServeHTTP(s, r)
	})
	return s
}

// loseAccess takes acme/shop away from rita, and lets a minute pass.
func (p *peopled) loseAccess() {
	p.hub.do(func() { p.hub.repos[3] = nil })
	p.advance(61 * time.Second)
}

// TestSlowReaderLosesTheLiveLog: who lost access gets no more of a log, however much of it there is to send.
func TestSlowReaderLosesTheLiveLog(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]bool{"while the run goes on": false, "after the run": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeopled(t, nil)
			run := p.launch(1)
			tr := p.write(run.ID)
			for n := range 600 {
				tr.say(said(fmt.Sprint("line ", n)))
			}
			if ended {
				p.end(1, run.ID)
			}
			const lost = 50
			s := p.slowly(p.as("rita"), eventsPath, func(n int) {
				if n == lost {
					p.loseAccess()
				}
			})
			if s.parts < lost || s.parts > lost+100 {
				t.Errorf("%d parts were sent, access was lost after %d", s.parts, lost)
			}
		})
	}
}

// TestSlowReaderOfATranscript: a download contains the file as it was at its beginning, also while the file grows, and ends when the person
// loses access.
func TestSlowReaderOfATranscript(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]int{"keeps access": 0, "loses access": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeopled(t, nil)
			run := p.launch(1)
			tr := p.write(run.ID)
			tr.say(said("the beginning"))
			if err := tr.file.Truncate(4 << 20); err != nil {
				t.Fatal(err)
			}
			s := p.slowly(p.as("rita"), "/tasks/acme/shop/1/runs/1/raw", func(n int) {
				if n == lost {
					p.loseAccess()
				}
				if n < 100 {
					tr.say(said("more"))
				}
			})
			got, whole := s.Body.Len(), 4<<20
			if lost == 0 && got != whole || lost > 0 && (got >= whole || got == 0) || s.deadlines < s.parts {
				t.Errorf("%d of %d bytes in %d parts with %d deadlines", got, whole, s.parts, s.deadlines)
			}
		})
	}
}
