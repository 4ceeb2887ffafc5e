package handlers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/state/store"
)

const (
	// maxPayload is GitHub's own limit on a webhook, and the store's.
	maxPayload = store.MaxPayloadBytes
	// bodyTimeout is the time in which a webhook has to arrive. GitHub gives up after 10 s.
	bodyTimeout = 10 * time.Second
	// storeTimeout bounds the write that has to happen before GitHub is answered, within its 10 s.
	storeTimeout = 8 * time.Second
	// maxBuffered bounds the memory for the bodies of all webhooks whose signature is not known yet.
	maxBuffered = 32 << 20
)

// front verifies webhooks before anything is kept of them. Strangers can reach it: all that it holds for them is bounded.
type front struct {
	secret []byte
	bodies *bodies
	within time.Duration // bodyTimeout
	inbox  *Inbox
	events map[string]map[string]string // that are stored
	log    zerolog.Logger               // of what is refused
	forms  []form
}

// Front returns the webhook route. A request without the headers of a webhook is refused before its body is read. A body is
// hashed while it arrives, into bounded memory and within bodyTimeout. If the SHA-256 signature is right and errand knows
// the event, the payload is stored in the inbox, and only then is GitHub answered 200. If it cannot be stored the answer is
// 500: GitHub lists it as failed and the delivery sweep fetches it again. The secret must not be empty.
func Front(secret string, inbox *Inbox) (http.Handler, error) {
	if secret == "" {
		return nil, errors.New("a webhook secret is required: without one anybody could direct the bot")
	}
	// Strangers can have as much refused as they like; the log has some of it.
	log := inbox.log.Sample(&zerolog.BurstSampler{Burst: 20, Period: time.Minute})
	return &front{
		secret: []byte(secret), bodies: newBodies(maxBuffered), within: bodyTimeout, inbox: inbox, events: treatments(), log: log, forms: webhookForms(),
	}, nil
}

// refuse answers a request whose body was not, or not all, read; its connection ends.
func (f *front) refuse(w http.ResponseWriter, r *http.Request, status int, words string) {
	f.log.Warn().Str("delivery", cut(r.Header.Get("X-Github-Delivery"))).Str("from", r.RemoteAddr).Int("status", status).Str("reason", words).Msg("webhook refused")
	w.Header().Set("Connection", "close")
	http.Error(w, words, status)
}

// cut shortens what a stranger wrote, for the log.
func cut(text string) string { return text[:min(len(text), 100)] }

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	for _, form := range f.forms {
		if values := r.Header[form.header]; len(values) != 1 || !form.valid(values[0]) {
			f.refuse(w, r, http.StatusBadRequest, form.header+" is missing or ill-formed: "+form.hint)
			return
		}
	}
	if r.ContentLength > maxPayload {
		f.refuse(w, r, http.StatusRequestEntityTooLarge, tooLarge)
		return
	}
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(f.within)) // where it cannot be set, the server's own holds
	body := f.bodies.begin(func() { _ = deadline.SetReadDeadline(time.Unix(1, 0)) })
	defer body.release()
	mac := hmac.New(sha256.New, f.secret)
	if err := body.readAll(io.TeeReader(http.MaxBytesReader(w, r.Body, maxPayload), mac)); err != nil {
		status, words := explain(err)
		f.refuse(w, r, status, words)
		return
	}
	_ = deadline.SetReadDeadline(time.Time{})
	shown, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="))
	if err != nil || !hmac.Equal(shown, mac.Sum(nil)) {
		f.refuse(w, r, http.StatusBadRequest, "the signature is wrong: the webhook secret is another one than the App's")
		return
	}
	f.store(w, r, body)
}

// store answers a webhook whose signature is right.
func (f *front) store(w http.ResponseWriter, r *http.Request, body *body) {
	event, guid := r.Header.Get("X-Github-Event"), r.Header.Get("X-Github-Delivery")
	if _, known := f.events[event]; !known {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	payload := body.bytes()
	if mediaType(r.Header.Get("Content-Type")) == typeForm {
		form, err := url.ParseQuery(string(payload))
		if err != nil {
			f.refuse(w, r, http.StatusBadRequest, "the webhook's form could not be read")
			return
		}
		payload = []byte(form.Get("payload"))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeTimeout)
	defer cancel()
	if err := f.inbox.Insert(ctx, guid, event, payload); err != nil {
		f.inbox.log.Error().Err(err).Str("delivery", guid).Msg("failed to store a webhook")
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

var tooLarge = fmt.Sprintf("a webhook has at most %d bytes", maxPayload)

// explain says why a body was not read to its end.
func explain(err error) (status int, words string) {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, tooLarge
	case errors.Is(err, errNoMemory):
		return http.StatusServiceUnavailable, err.Error()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, fmt.Sprintf("the webhook did not arrive within %s", bodyTimeout)
	default:
		return http.StatusBadRequest, "the webhook could not be read"
	}
}
