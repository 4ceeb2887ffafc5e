package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/errand-bot/errand/state"
)

const (
	maxStreams   = 64                     // live logs at once
	followEvery  = 250 * time.Millisecond // between two looks at the file
	checkEvery   = 2 * time.Second        // between two looks whether the run has ended
	beatEvery    = 15 * time.Second       // so that proxies and browsers know that we are here
	writeTime    = 20 * time.Second       // for a client to take what is sent
	streamTime   = 2 * time.Hour          // then the browser asks again and goes on where it was
	batchRecords = 200                    // records between two looks at everything else
	maxLast      = 50                     // batches of what came while the run ended
)

// stream is one live log.
type stream struct {
	p       *pages
	key     state.TaskKey
	run     string
	at      int64 // the place up to which everything was sent
	seq     int64 // the number of the last line that was sent
	session *sse.Session
	ctl     *http.ResponseController
	own     *os.File // the transcript, if there was none when the client came, or it was replaced
	ended   bool     // the transcript's end was sent
}

// events follows a run's transcript as server-sent events. Each has the items of one record as JSON
// and its mark as its id, from which a browser that was cut off goes on. The last event is
// of the type "end"; who asks again after that gets 204, which ends it for good.
func (p *pages) events(w http.ResponseWriter, r *http.Request) {
	t, run, f, ok := p.open(w, r, false)
	if !ok {
		return
	}
	if f != nil {
		defer func() { _ = f.Close() }()
	}
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		p.problem(w, r, http.StatusServiceUnavailable, "Too many live logs are open. The page can be reloaded instead.")
		return
	}
	from, err := startOf(r, f)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if !live(t, run) && (f == nil || atEnd(f, from.at)) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	session, err := sse.Upgrade(w, r)
	if err != nil {
		p.fail(w, r, fmt.Errorf("begin a live log: %w", err))
		return
	}
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	s := &stream{p: p, key: t.Key, run: run.ID, at: from.at, seq: from.seq, session: session, ctl: http.NewResponseController(w)}
	_ = s.ctl.SetReadDeadline(time.Time{}) // a server's limit on reading the request is not for us
	ctx, cancel := context.WithTimeout(r.Context(), streamTime)
	defer cancel()
	if err := s.follow(ctx, f); err != nil && ctx.Err() == nil {
		p.cfg.Log.Debug().Err(err).Str("run", run.ID).Msg("live log ends")
	}
}

// startOf returns where a client goes on: behind the last event it had, or where its page ended.
func startOf(r *http.Request, f *os.File) (m mark, err error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("from")
	}
	m = readMark(text)
	if f == nil || m.at == 0 {
		return m, nil
	}
	m.at, err = m.find(f)
	return m, err
}

func atEnd(f *os.File, at int64) bool {
	_, err := recordsFrom(f, at).next()
	return errors.Is(err, io.EOF)
}

// follow sends what is there and what comes, until the run ends, the client goes or ctx ends.
func (s *stream) follow(ctx context.Context, f *os.File) error {
	if err := s.beat(); err != nil {
		return err
	}
	defer func() {
		if s.own != nil {
			_ = s.own.Close()
		}
	}()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	checked, told := time.Now(), time.Now()
	for {
		sent, err := s.send(ctx, f)
		switch {
		case err != nil:
			return err
		case s.ended:
			return s.end()
		case sent:
			told = time.Now()
			continue
		case time.Since(told) > beatEvery:
			told = time.Now()
			if err := s.beat(); err != nil {
				return err
			}
		}
		if time.Since(checked) > checkEvery {
			if checked = time.Now(); !s.live(ctx) {
				return s.last(ctx, f)
			}
			if _, err := s.renew(f); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.p.cfg.Stopping: // the browser finds us again after the restart
			return nil
		case <-tick.C:
		}
	}
}

// last sends what came while the run ended, and the end.
func (s *stream) last(ctx context.Context, f *os.File) error {
	for range maxLast {
		sent, err := s.send(ctx, f)
		if err == nil && !sent {
			sent, err = s.renew(f)
		}
		if err != nil {
			return err
		}
		if !sent {
			break
		}
	}
	return s.end()
}

// begun opens the transcript of a run that had none, nil if it still has none.
func (s *stream) begun() (*os.File, error) {
	f, err := s.p.cfg.Transcripts.OpenTranscript(s.run)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// send sends the whole records behind s.at, a bounded number of them, and reports whether there were.
func (s *stream) send(ctx context.Context, f *os.File) (bool, error) {
	if s.own != nil {
		f = s.own
	}
	if f == nil {
		var err error
		if f, err = s.begun(); f == nil || err != nil {
			return false, err
		}
		s.own = f
	}
	r := recordsFrom(f, s.at)
	sent := false
	for n := 0; n < batchRecords && ctx.Err() == nil; n++ {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return sent, fmt.Errorf("read transcript: %w", err)
		}
		s.at, s.seq, sent = rec.next, max(s.seq, rec.seq()), true
		items, end := rec.items()
		s.ended = s.ended || end != nil
		if len(items) == 0 {
			continue
		}
		data, err := json.Marshal(items)
		if err != nil {
			return sent, fmt.Errorf("encode a live log: %w", err)
		}
		if err := s.message("", string(data)); err != nil {
			return sent, err
		}
	}
	if !sent {
		return false, nil
	}
	return true, s.session.Flush()
}

// message sends one event with the present place as its id.
func (s *stream) message(kind, data string) error {
	m := &sse.Message{ID: sse.ID(mark{at: s.at, seq: s.seq}.String())}
	if kind != "" {
		m.Type = sse.Type(kind)
	}
	m.AppendData(data)
	_ = s.ctl.SetWriteDeadline(time.Now().Add(writeTime)) // where it cannot be set, TCP gives up
	return s.session.Send(m)
}

// beat sends a comment, which browsers skip.
func (s *stream) beat() error {
	m := &sse.Message{}
	m.AppendComment("here")
	_ = s.ctl.SetWriteDeadline(time.Now().Add(writeTime))
	if err := s.session.Send(m); err != nil {
		return err
	}
	return s.session.Flush()
}

func (s *stream) end() error {
	if err := s.message("end", "over"); err != nil {
		return err
	}
	return s.session.Flush()
}

// live asks the store whether the run still goes on; when in doubt it does.
func (s *stream) live(ctx context.Context) bool {
	t, err := s.p.cfg.Store.Task(ctx, s.key)
	if err != nil || t == nil {
		return err != nil
	}
	return t.Run != nil && t.Run.ID == s.run && t.Run.State != state.RunEnded
}
