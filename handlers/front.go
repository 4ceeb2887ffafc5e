package handlers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/state/store"
)

// HookPath is the path of errand's webhook.
const HookPath = "/api/github/hook"

// SecretHeader is the header of an answer that tells, if several secrets are accepted, with which of them the webhook was signed: 1 is the
// newest.
const SecretHeader = "Errand-Webhook-Secret"

// NoHook is the webhook's address of an App whose webhooks errand reads from GitHub's log: a name that cannot exist (RFC 2606).
const NoHook = "https://errand.invalid" + HookPath

const (
	// maxPayload is the limit on a webhook's size, both GitHub's and the store's.
	maxPayload = store.MaxPayloadBytes
	// bodyTimeout limits the time for receiving a webhook. GitHub gives up after 10 s.
	bodyTimeout = 10 * time.Second
	// storeTimeout limits the write before GitHub's request is answered, within the same 10 s.
	storeTimeout = 8 * time.Second
	// maxBuffered limits the memory for the bodies of all webhooks whose signature is not yet verified.
	maxBuffered = 32 << 20
)

// front verifies webhooks and stores them in the inbox. Anybody can send it requests, so all resources for unverified
// requests are limited.
type front struct {
	secrets [][]byte
	bodies  *bodies
	within  time.Duration // bodyTimeout
	inbox   *Inbox
	events  map[string]map[string]string // events that are stored, by name
	log     zerolog.Logger               // for rejected requests
	forms   []form
}

// Front returns the handler of the webhook route. It rejects a request without the headers of a webhook before reading
// its body. It computes the hash of a body during its receipt, in limited memory and time. If the SHA-256 signature is
// valid and errand handles the event, it stores the payload in the inbox, and only then answers 200. If storing fails
// it answers 500: GitHub lists the delivery as failed, and the delivery sweep fetches it again. A signature with any of the secrets is
// valid; there must be one, and none may be empty.
func Front(secrets []string, inbox *Inbox) (http.Handler, error) {
	if len(secrets) == 0 || slices.Contains(secrets, "") {
		return nil, errors.New("a webhook secret is required: without one, anybody could control errand")
	}
	f := &front{bodies: newBodies(maxBuffered), within: bodyTimeout, inbox: inbox, events: treatments(), forms: webhookForms()}
	for _, secret := range secrets {
		f.secrets = append(f.secrets, []byte(secret))
	}
	// Anybody can cause rejected requests, so the log has only a sample of them.
	f.log = inbox.log.Sample(&zerolog.BurstSampler{Burst: 20, Period: time.Minute})
	return f, nil
}

// reject answers a request whose body was not read completely, and closes its connection.
func (f *front) reject(w http.ResponseWriter, r *http.Request, status int, words string) {
	f.log.Warn().Str("delivery", cut(r.Header.Get("X-Github-Delivery"))).Str("from", r.RemoteAddr).Int("status", status).Str("reason", words).Msg("webhook rejected")
	w.Header().Set("Connection", "close")
	http.Error(w, words, status)
}

// cut shortens an untrusted text for the log.
func cut(text string) string { return text[:min(len(text), 100)] }

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	for _, form := range f.forms {
		if values := r.Header[form.header]; len(values) != 1 || !form.valid(values[0]) {
			f.reject(w, r, http.StatusBadRequest, form.header+" is missing or malformed: "+form.hint)
			return
		}
	}
	if r.ContentLength > maxPayload {
		f.reject(w, r, http.StatusRequestEntityTooLarge, tooLarge)
		return
	}
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(f.within)) // if it cannot be set, the server's own deadline applies
	body := f.bodies.begin(func() { _ = deadline.SetReadDeadline(time.Unix(1, 0)) })
	defer body.release()
	macs := f.macs()
	if err := body.readAll(io.TeeReader(http.MaxBytesReader(w, r.Body, maxPayload), macs)); err != nil {
		status, words := bodyError(err)
		f.reject(w, r, status, words)
		return
	}
	_ = deadline.SetReadDeadline(time.Time{})
	shown, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="))
	secret := macs.find(shown)
	if err != nil || secret < 0 {
		f.reject(w, r, http.StatusBadRequest, "the signature is wrong: the webhook secret differs from the App's")
		return
	}
	if len(f.secrets) > 1 {
		w.Header().Set(SecretHeader, strconv.Itoa(secret+1))
	}
	f.store(w, r, body)
}

// macs are the hashes of a body with each secret.
type macs []hash.Hash

func (f *front) macs() macs {
	list := make(macs, len(f.secrets))
	for i, secret := range f.secrets {
		list[i] = hmac.New(sha256.New, secret)
	}
	return list
}

// Write adds to all hashes; it never fails.
func (m macs) Write(p []byte) (int, error) {
	for _, h := range m {
		_, _ = h.Write(p) // a hash returns no error
	}
	return len(p), nil
}

// find returns the index of the hash that a signature is, or -1.
func (m macs) find(signature []byte) int {
	found := -1
	for i, h := range m {
		if hmac.Equal(signature, h.Sum(nil)) && found < 0 {
			found = i
		}
	}
	return found
}

// store stores a webhook with a valid signature and answers its request.
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
			f.reject(w, r, http.StatusBadRequest, "the webhook's form could not be parsed")
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

// bodyError returns the status and the reason for a body that could not be read.
func bodyError(err error) (status int, words string) {
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
