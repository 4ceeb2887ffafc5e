package ci

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// Limits of the download of a log, in bytes. Of a log whose length is known and larger than wholeLog only the end is requested.
const (
	wholeLog = 8 << 20
	endOfLog = 2 << 20
	maxLog   = 128 << 20
)

// errNoLog says that the log cannot be read and the note says why.
var errNoLog = errors.New("no log")

// ErrLogUnavailable matches the errors of FailedCheck if only the log could not be read for now: its host failed, or did not answer in time.
var ErrLogUnavailable = errors.New("the log cannot be read for now")

// logError is a log that cannot be read for now.
type logError struct{ cause error }

// Error returns the cause.
func (e *logError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *logError) Unwrap() []error { return []error{ErrLogUnavailable, e.cause} }

// Explain fills in an error for people.
func (e *logError) Explain(into *client.Error) {
	into.Class, into.Status = client.ClassTemporary, client.StatusOf(e.cause)
	into.Reason = "The log could not be read, because the server that has it failed."
	if errors.Is(e.cause, context.DeadlineExceeded) {
		into.Reason = "The log could not be read, because the server that has it did not answer in time."
	}
}

// readLog downloads the job's log, of which it keeps the end.
func (f *causeReader) readLog(during span) error {
	at, err := f.logAddress()
	if client.StatusOf(err) >= http.StatusInternalServerError {
		return &logError{err}
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(f.op.Ctx, 2*f.checker.client.Config().Timeout)
	defer cancel()
	body, partial, err := f.openLog(ctx, at, 0)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	log := bufio.NewReaderSize(body, 64<<10)
	if start, _ := log.Peek(512); !isText(start) { // an error comes again when the log is read
		f.note("GitHub sent something else than a log.")
		return errNoLog
	}
	end := newLogEnd(during)
	end.all.cut, end.step.cut = partial, partial
	limited := &io.LimitedReader{R: log, N: maxLog}
	if err := end.readFrom(bufio.NewReader(limited)); err != nil {
		return &logError{fmt.Errorf("download log: %w", withoutAddress(err))}
	}
	if limited.N <= 0 && !end.complete {
		f.note(fmt.Sprintf("The log is larger than %d MiB, so its end was not read.", maxLog>>20))
		return errNoLog
	}
	f.out.Log, f.out.Cut = end.text()
	return nil
}

// logAddress asks for the address of the log, which is valid for a minute.
func (f *causeReader) logAddress() (string, error) {
	path := fmt.Sprintf("repos/%s/%s/actions/jobs/%d/logs", f.r.Owner, f.r.Name, f.out.Check.ID)
	req, err := f.op.GitHub.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	web := f.op.GitHub.Client()
	web.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if next.Response.StatusCode == http.StatusFound || len(via) > 3 { // any other one is for a renamed repository
			return http.ErrUseLastResponse
		}
		return nil
	}
	resp, err := web.Do(req.WithContext(f.op.Ctx))
	if err != nil {
		return "", fmt.Errorf("request log: %w", withoutAddress(err))
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusFound {
		at, err := resp.Location()
		if err != nil {
			return "", fmt.Errorf("read the log's address: %w", withoutAddress(err))
		}
		return at.String(), nil
	}
	if err := github.CheckResponse(resp); err != nil {
		return "", err
	}
	f.note("GitHub did not tell where the log is.")
	return "", errNoLog
}

// openLog requests a log, from a byte on, without credentials, and reports whether its beginning is missing. The caller closes the body.
func (f *causeReader) openLog(ctx context.Context, at string, from int64) (body io.ReadCloser, partial bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, false, fmt.Errorf("make request for log: %w", withoutAddress(err))
	}
	cfg := f.checker.client.Config()
	req.Header.Set("User-Agent", cfg.UserAgent)
	req.Header.Set("Accept-Encoding", "identity") // else the length is unknown
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := (&http.Client{Transport: cfg.Transport, CheckRedirect: forgetReferrer}).Do(req)
	if err != nil {
		return nil, false, &logError{fmt.Errorf("download log: %w", withoutAddress(err))}
	}
	switch length := resp.ContentLength; {
	case resp.StatusCode == http.StatusOK && from == 0 && length > wholeLog:
		_ = resp.Body.Close()
		return f.openLog(ctx, at, length-endOfLog)
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusPartialContent && from > 0:
		return resp.Body, resp.StatusCode == http.StatusPartialContent, nil
	}
	_ = resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		f.note("GitHub does not have the log any more.")
		return nil, false, errNoLog
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusRequestTimeout:
		return nil, false, &logError{fmt.Errorf("download log: the server answered %s", resp.Status)}
	}
	f.note(fmt.Sprintf("The server that has the log answered %s.", text(resp.Status, 100)))
	return nil, false, errNoLog
}

// forgetReferrer follows a redirection without telling the address that it came from, which lets everybody read the log.
func forgetReferrer(next *http.Request, via []*http.Request) error {
	if len(via) > 3 {
		return errors.New("too many redirections")
	}
	next.Header.Del("Referer")
	return nil
}

// withoutAddress removes the address from an error, which lets everybody read the log.
func withoutAddress(err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}
	if strings.Contains(u.Err.Error(), "://") {
		return errors.New("malformed address")
	}
	return u.Err
}

// isText reports whether a download begins like a log.
func isText(start []byte) bool {
	kind := http.DetectContentType(start)
	return strings.HasPrefix(kind, "text/plain") || kind == "application/octet-stream" // a log with strange bytes
}
