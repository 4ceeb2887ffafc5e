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

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/admin/transcript"
	"github.com/errand-bot/errand/state"
)

const (
	maxStreams   = 64                     // concurrent live logs
	followEvery  = 250 * time.Millisecond // poll interval of the file
	checkEvery   = 2 * time.Second        // poll interval of the run's state, and of what the viewer may read
	beatEvery    = 15 * time.Second       // keeps proxies and browsers from closing the connection
	writeTime    = 20 * time.Second       // timeout for writing to a client
	streamTime   = 2 * time.Hour          // after this the browser reconnects and continues at the same place
	batchRecords = 200                    // records sent before other events are handled
	maxLast      = 50                     // batches of records written while the run ended
)

// stream is one live log.
type stream struct {
	p       *pages
	key     state.TaskKey
	run     string
	at      int64 // offset up to which everything was sent
	seq     int64 // number of the last line that was sent
	session *sse.Session
	ctl     *http.ResponseController
	own     *os.File // the transcript, if it did not exist when the client connected or was replaced
	ended   bool     // the transcript's end was sent
	permit  *permit
}

// events serves a run's transcript as server-sent events. Each event contains the items of one record as JSON, with its
// mark as the ID from which a reconnecting browser continues. The last event has the type "end"; a request after it
// gets status 204, which stops the browser from reconnecting.
func (p *pages) events(w http.ResponseWriter, r *http.Request) {
	t, run, f, ok := p.open(w, r, false)
	if !ok {
		return
	}
	if f != nil {
		defer func() { _ = f.Close() }()
	}
	endStream := p.shares.openStream(login.ViewerOf(r))
	if endStream == nil {
		w.Header().Set("Retry-After", "30")
		p.problem(w, r, http.StatusTooManyRequests, "You have too many live logs open. Close a page with one, or reload this page instead.")
		return
	}
	defer endStream()
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		w.Header().Set("Retry-After", "30")
		p.problem(w, r, http.StatusServiceUnavailable, "Too many live logs are open. Reload the page instead.")
		return
	}
	from, err := startOf(r, f)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if !live(t, run) && (f == nil || atEnd(f, from.At)) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	session, err := sse.Upgrade(w, r)
	if err != nil {
		p.fail(w, r, fmt.Errorf("start a live log: %w", err))
		return
	}
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	s := &stream{p: p, key: t.Key, run: run.ID, at: from.At, seq: from.Seq, session: session, ctl: http.NewResponseController(w)}
	s.permit = newPermit(r, t.Key.Repo)
	_ = s.ctl.SetReadDeadline(time.Time{}) // the server's read timeout does not apply to streams
	ctx, cancel := context.WithTimeout(r.Context(), streamTime)
	defer cancel()
	if err := s.follow(ctx, f); err != nil && ctx.Err() == nil {
		p.cfg.Log.Debug().Err(err).Str("run", run.ID).Msg("live log ended")
	}
}

// startOf returns where a client continues: after its last event, or at the end of its page.
func startOf(r *http.Request, f *os.File) (m transcript.Mark, err error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("from")
	}
	m = transcript.ParseMark(text)
	if f == nil || m.At == 0 {
		return m, nil
	}
	m.At, err = m.Find(f)
	return m, err
}

func atEnd(f *os.File, at int64) bool {
	_, err := transcript.From(f, at).Next()
	return errors.Is(err, io.EOF)
}

// follow sends existing and new records until the run ends, the client disconnects or ctx ends.
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
		if !s.permit.holds() {
			return nil // a new request is answered accordingly
		}
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
			checked = time.Now()
			if !s.live(ctx) {
				return s.last(ctx, f)
			}
			if _, err := s.renew(f); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.p.cfg.Stopping: // the browser reconnects after the restart
			return nil
		case <-tick.C:
		}
	}
}

// last sends the records written while the run ended, and the end event.
func (s *stream) last(ctx context.Context, f *os.File) error {
	for range maxLast {
		if !s.permit.holds() {
			return nil
		}
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

// begun opens the transcript of a run that had none, or returns nil if there is still none.
func (s *stream) begun() (*os.File, error) {
	f, err := s.p.cfg.Transcripts.OpenTranscript(s.run)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// send sends a bounded number of complete records after s.at, no longer than checkEvery, and reports whether there were any.
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
	r, begun := transcript.From(f, s.at), time.Now()
	sent := false
	for n := 0; n < batchRecords && time.Since(begun) < checkEvery && ctx.Err() == nil; n++ {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return sent, fmt.Errorf("read transcript: %w", err)
		}
		s.at, s.seq, sent = rec.Next, max(s.seq, rec.Seq()), true
		items, end := rec.Items()
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

// message sends one event with the current mark as its ID.
func (s *stream) message(kind, data string) error {
	m := &sse.Message{ID: sse.ID(transcript.Mark{At: s.at, Seq: s.seq}.String())}
	if kind != "" {
		m.Type = sse.Type(kind)
	}
	m.AppendData(data)
	_ = s.ctl.SetWriteDeadline(time.Now().Add(writeTime)) // without a deadline TCP times out eventually
	return s.session.Send(m)
}

// beat sends a comment, which browsers ignore.
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

// live reports whether the run is active according to the store. If in doubt it returns true.
func (s *stream) live(ctx context.Context) bool {
	t, err := s.p.cfg.Store.Task(ctx, s.key)
	if err != nil || t == nil {
		return err != nil
	}
	return t.Run != nil && t.Run.ID == s.run && t.Run.State != state.RunEnded
}

// renew switches to the file that replaced the one read to its end, and reports whether there is one.
func (s *stream) renew(f *os.File) (bool, error) {
	if s.own != nil {
		f = s.own
	}
	if f == nil {
		return false, nil
	}
	now, err := s.begun()
	if now == nil || err != nil {
		return false, err
	}
	if same(f, now) {
		return false, now.Close()
	}
	if s.own != nil {
		_ = s.own.Close()
	}
	s.own = now
	s.at, err = transcript.Mark{At: s.at, Seq: s.seq}.Find(now)
	return err == nil, err
}

// same reports whether both are the same file. If in doubt it returns true.
func same(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return true
	}
	y, err := b.Stat()
	return err != nil || os.SameFile(x, y)
}
