package delivery

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Delivery is one attempt to deliver an event to the App.
type Delivery struct {
	ID           int64  // of this attempt
	GUID         string // shared by all attempts
	Event        string
	Action       string
	Installation int64
	Repository   int64
	Payload      []byte
	URL          string
	Secret       string
	Redelivery   bool
	Foreign      bool // not sent by GitHub, so not in its log
	DeliveredAt  time.Time
	Duration     time.Duration
	Status       string // OK, or the reason of the failure
	StatusCode   int
	ReqHeader    http.Header
	RespHeader   http.Header
	RespBody     string
}

// Config configures a queue.
type Config struct {
	Now     func() time.Time // clock of the log
	Timeout time.Duration    // of one attempt
	AppID   int64            // named in the headers of requests
	OnSend  func(*Delivery)  // called before each attempt; may be nil
}

// Queue delivers webhooks one after the other, in the order of the acts. Like GitHub, it never retries automatically.
type Queue struct {
	cfg    Config
	client *http.Client
	ctx    context.Context // ends deliveries

	mu      sync.Mutex
	queue   []*Delivery
	held    []*Delivery
	holding bool
	busy    int
	log     []*Delivery // all attempts, oldest first
	rules   []*Fault
	wake    chan struct{}
	idle    *sync.Cond
}

// New returns a queue that delivers while Run runs and until ctx ends.
func New(ctx context.Context, cfg Config) *Queue {
	q := &Queue{ctx: ctx, cfg: cfg, wake: make(chan struct{}, 1), client: &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(), // see package webtest for why not the default one
		Timeout:       cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	q.idle = sync.NewCond(&q.mu)
	return q
}

// maxPayload is the size of the largest payload that GitHub sends.
const maxPayload = 25 << 20

// Send queues a delivery, to which the faults are applied.
func (q *Queue) Send(d *Delivery) {
	if len(d.Payload) > maxPayload {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.bend(d) {
		if q.holding || one.hold {
			q.held = append(q.held, one.Delivery)
			continue
		}
		q.queue = append(q.queue, one.Delivery)
	}
	q.signal()
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Run delivers until the context of New ends.
func (q *Queue) Run() {
	for {
		q.mu.Lock()
		var batch []*Delivery
		if len(q.queue) > 0 {
			n := 1
			for n < len(q.queue) && q.queue[n].GUID == q.queue[0].GUID && q.queue[n] != q.queue[0] {
				n++ // send duplicates at the same time
			}
			batch = append(batch, q.queue[:n]...)
			q.queue = q.queue[n:]
			q.busy += n
		}
		if len(batch) == 0 && q.busy == 0 {
			q.idle.Broadcast()
		}
		q.mu.Unlock()
		if len(batch) == 0 {
			select {
			case <-q.wake:
				continue
			case <-q.ctx.Done():
				q.idle.Broadcast()
				return
			}
		}
		var wg sync.WaitGroup
		for _, d := range batch {
			wg.Go(func() { q.deliver(d) })
		}
		wg.Wait()
		q.mu.Lock()
		q.busy -= len(batch)
		q.mu.Unlock()
	}
}

// deliver makes one attempt and adds it to the log.
func (q *Queue) deliver(d *Delivery) {
	start := time.Now()
	d.ReqHeader = header(d, q.cfg.AppID)
	if q.cfg.OnSend != nil {
		q.cfg.OnSend(d)
	}
	code, answered, body, err := q.post(d)
	q.mu.Lock()
	defer q.mu.Unlock()
	d.DeliveredAt, d.Duration = q.cfg.Now().UTC(), time.Since(start)
	d.StatusCode, d.RespHeader, d.RespBody = code, answered, body
	switch {
	case err != nil && isTimeout(err):
		d.Status = "timed out"
	case err != nil:
		d.Status = "failed to connect to host"
	case code >= 200 && code < 300:
		d.Status = "OK"
	default:
		d.Status = fmt.Sprintf("Invalid HTTP Response: %d", code)
	}
	if !d.Foreign {
		q.log = append(q.log, d)
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// errRefused simulates a host that cannot be reached.
var errRefused = errors.New("connection refused")

func (q *Queue) post(d *Delivery) (int, http.Header, string, error) {
	if address, err := url.Parse(d.URL); d.URL == "" || err == nil && strings.HasSuffix(address.Hostname(), ".invalid") {
		return 0, nil, "", errRefused // such a name never exists (RFC 2606); asking the network would take time
	}
	ctx, cancel := context.WithTimeout(q.ctx, q.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Payload))
	if err != nil {
		return 0, nil, "", fmt.Errorf("create webhook request: %w", err)
	}
	req.Header = d.ReqHeader.Clone()
	resp, err := q.client.Do(req)
	if err != nil {
		return 0, nil, "", fmt.Errorf("post webhook: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return resp.StatusCode, resp.Header, string(body), fmt.Errorf("read webhook answer: %w", err)
	}
	return resp.StatusCode, resp.Header, string(body), nil
}

// header returns the headers that GitHub sends with a payload.
func header(d *Delivery, appID int64) http.Header {
	mac := hmac.New(sha256.New, []byte(d.Secret))
	mac.Write(d.Payload)
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "*/*")
	h.Set("User-Agent", "GitHub-Hookshot/5ca1ab1")
	h.Set("X-GitHub-Event", d.Event)
	h.Set("X-GitHub-Delivery", d.GUID)
	h.Set("X-GitHub-Hook-ID", strconv.FormatInt(appID, 10))
	h.Set("X-GitHub-Hook-Installation-Target-ID", strconv.FormatInt(appID, 10))
	h.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
	h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return h
}

// Wait waits until all deliveries are done, except those that are held, or one of the two contexts ends.
func (q *Queue) Wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, q.idle.Broadcast)
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue)+q.busy > 0 && ctx.Err() == nil && q.ctx.Err() == nil {
		q.idle.Wait()
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for webhooks: %w", err)
	}
	return nil
}

// Log returns copies of all attempts so far, oldest first.
func (q *Queue) Log() []Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Delivery, 0, len(q.log))
	for _, d := range q.log {
		c := *d
		c.Payload = slices.Clone(d.Payload)
		out = append(out, c)
	}
	return out
}

// Find returns a copy of a logged delivery, to be sent again, or nil.
func (q *Queue) Find(id int64) *Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range q.log {
		if d.ID == id {
			c := *d
			return &c
		}
	}
	return nil
}
