package admin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/admin/transcript"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// tailRecords is the number of records initially shown of an active run.
const tailRecords = 60

// runView is the data of a run's page.
type runView struct {
	Card   card
	Run    state.Run
	Known  bool // the task knows the run; otherwise only its file exists
	Live   bool
	Tone   string // CSS class of the outcome
	Path   string // path of the page
	Header *runlog.Header
	Part   *transcript.Part
	Newest bool // the page shows the end of the log
	Older  int64
	Gone   string // reason for a missing transcript
}

// Log returns the visible part of the log. Only the end of a log can be live.
func (v *runView) Log() *liveLog {
	return &liveLog{Path: v.Path, Part: v.Part, Live: v.Live && v.Newest, Wide: true}
}

// Took returns the duration of the run up to now.
func (v *runView) Took(now time.Time) time.Duration { return took(&v.Run, now) }

func took(r *state.Run, now time.Time) time.Duration {
	switch {
	case r.Started.IsZero():
		return 0
	case r.Ended.IsZero():
		return now.Sub(r.Started)
	}
	return r.Ended.Sub(r.Started)
}

// runOf finds the run named by a path, by its number or ID in the task's current life, or by its file in an earlier
// one.
func runOf(t *state.Task, name string) (run state.Run, known, ok bool) {
	prefix := fmt.Sprintf("%d-%d-", t.Key.Repo, t.Key.Issue)
	seq, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
	if err != nil || seq <= 0 || seq > t.RunSeq {
		return state.Run{}, false, false
	}
	if t.Run != nil && t.Run.Seq == seq {
		return *t.Run, true, true
	}
	for _, r := range t.Runs {
		if r.Seq == seq {
			return r, true, true
		}
	}
	return state.Run{ID: prefix + strconv.Itoa(seq), Seq: seq, State: state.RunEnded}, false, true
}

// live reports whether a run's transcript may still grow.
func live(t *state.Task, run state.Run) bool {
	return t.Run != nil && t.Run.ID == run.ID && run.State != state.RunEnded
}

// open finds task, run and transcript. If one is missing it responds and returns false; a missing transcript is an
// error only if must is set.
func (p *pages) open(w http.ResponseWriter, r *http.Request, must bool) (t *state.Task, run state.Run, f *os.File, ok bool) {
	t = taskOf(r)
	run, known, ok := runOf(t, r.PathValue("run"))
	if !ok {
		p.problem(w, r, http.StatusNotFound, "The task has no run with this number or ID.")
		return nil, run, nil, false
	}
	f, err := p.cfg.Transcripts.OpenTranscript(run.ID)
	switch {
	case err == nil:
		return t, run, f, true
	case !errors.Is(err, fs.ErrNotExist):
		p.fail(w, r, fmt.Errorf("open the transcript of %s: %w", run.ID, err))
	case must || !known:
		p.problem(w, r, http.StatusNotFound, "This run has no transcript: nothing has been written yet, or it was deleted because of its age.")
	default:
		return t, run, nil, true
	}
	return nil, run, nil, false
}

// run serves the page of a run: the prompts and one page of the log.
func (p *pages) run(w http.ResponseWriter, r *http.Request) {
	t, run, f, ok := p.open(w, r, false)
	if !ok {
		return
	}
	_, known, _ := runOf(t, r.PathValue("run"))
	tone := runTone(&run)
	verdict, message := run.Verdict()
	run.Status, run.Message = state.RunStatus(verdict), message // as the page shows it
	if !login.ViewerOf(r).Operator() && run.Status == state.StatusBudget {
		run.Message = withoutLimits(message)
	}
	v := &runView{Card: newCard(t), Run: run, Tone: tone, Known: known, Live: live(t, run), Path: runPath(t, run.Seq)}
	if f == nil {
		v.Gone = "Nothing has been written about this run yet."
		if !v.Live {
			v.Gone = "The transcript of this run was deleted."
		}
	} else {
		defer func() { _ = f.Close() }()
		if err := v.read(f, r.URL.Query().Get("from")); err != nil {
			p.fail(w, r, fmt.Errorf("read the transcript of %s: %w", run.ID, err))
			return
		}
	}
	p.show(w, r, http.StatusOK, "run", page{Title: fmt.Sprintf("Run %d of %s#%d", run.Seq, v.Card.Repo, v.Card.Issue), Data: v})
}

func runPath(t *state.Task, seq int) string { return fmt.Sprintf("%s/runs/%d", taskPath(t), seq) }

// read reads the page of the transcript that starts at from: an offset, "end", or empty for the start (for an active
// run the end).
func (v *runView) read(f *os.File, from string) error {
	h, err := transcript.ReadHeader(f)
	if errors.Is(err, io.EOF) {
		v.Gone = "The transcript has not started yet."
		return nil
	}
	if err != nil {
		return err
	}
	v.Header = h
	place, err := strconv.ParseInt(from, 10, 64)
	if from == "end" || from == "" && v.Live {
		v.Part, err = transcript.ReadTail(f, tailRecords)
	} else {
		if err != nil {
			place = 0
		}
		v.Part, err = transcript.ReadPart(f, place)
	}
	if err != nil {
		return err
	}
	v.Newest = !v.Part.After()
	v.Older, err = transcript.Back(f, v.Part.From, transcript.PageRecords)
	return err
}

// raw serves the transcript file.
func (p *pages) raw(w http.ResponseWriter, r *http.Request) {
	_, run, f, ok := p.open(w, r, true)
	if !ok {
		return
	}
	defer func() { _ = f.Close() }()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="`+run.ID+`.jsonl"`)
	if err := sendFile(w, r, f); err != nil && r.Context().Err() == nil {
		p.cfg.Log.Warn().Err(err).Msg("failed to send a transcript")
	}
}

const sendChunk = 32 << 10 // bytes of a file that are sent before the next check

// sendFile sends a file of a task up to its present size, as long as the viewer may read the task. A client that receives nothing for
// writeTime is disconnected.
func sendFile(w http.ResponseWriter, r *http.Request, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10)) // a client notices an answer that was cut off
	ctl, permit := http.NewResponseController(w), newPermit(r, taskOf(r).Key.Repo)
	for left := info.Size(); left > 0 && permit.holds(); {
		_ = ctl.SetWriteDeadline(time.Now().Add(writeTime)) // without a deadline TCP times out eventually
		n, err := io.CopyN(w, f, min(left, sendChunk))
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// record serves the full text of one record, for cut items.
func (p *pages) record(w http.ResponseWriter, r *http.Request) {
	_, _, f, ok := p.open(w, r, true)
	if !ok {
		return
	}
	defer func() { _ = f.Close() }()
	place, err := strconv.ParseInt(r.PathValue("offset"), 10, 64)
	if err != nil || place < 0 {
		p.notFound(w, r)
		return
	}
	if place, err = transcript.LineStart(f, place); err != nil {
		p.fail(w, r, err)
		return
	}
	rec, err := transcript.From(f, place).Next()
	if errors.Is(err, io.EOF) {
		p.notFound(w, r)
		return
	}
	if err != nil {
		p.fail(w, r, fmt.Errorf("read a record: %w", err))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, rec.Text()) // the client may have disconnected
}
