package simgithub

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// delivery is one attempt to deliver an event to the App.
type delivery struct {
	ID           int64
	GUID         string // shared by all attempts
	Event        string
	Action       string
	Installation int64
	Repository   int64
	Payload      []byte
	URL          string
	Secret       string
	Redelivery   bool
	Stranger     bool // not sent by GitHub, so not in its log
	DeliveredAt  time.Time
	Duration     time.Duration
	Status       string // OK, or the reason of the failure
	StatusCode   int
	ReqHeader    http.Header
	RespHeader   http.Header
	RespBody     string
}

// hookQueue delivers webhooks one after the other, in the order of the acts. Like GitHub, it never retries by itself.
type hookQueue struct {
	sim    *Sim
	client *http.Client

	mu      sync.Mutex
	queue   []*delivery
	held    []*delivery
	holding bool
	busy    int
	log     []*delivery // all attempts, oldest first
	rules   []*HookFault
	wake    chan struct{}
	idle    *sync.Cond
}

func newHookQueue(s *Sim) *hookQueue {
	q := &hookQueue{sim: s, wake: make(chan struct{}, 1), client: &http.Client{
		Timeout:       s.cfg.HookTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	q.idle = sync.NewCond(&q.mu)
	return q
}

// newDelivery returns the delivery of a payload as it is now. It needs the lock of the Sim.
func (q *hookQueue) newDelivery(d delivery, payload obj) *delivery {
	d.ID, d.GUID = q.sim.newID(), uuid.NewString()
	body, err := json.Marshal(payload)
	if err != nil { // payloads contain only values that can be marshaled
		q.sim.log.Error().Err(err).Str("event", d.Event).Msg("failed to marshal the payload of a webhook")
	}
	d.Payload, d.URL, d.Secret = body, q.sim.app.WebhookURL, q.sim.app.WebhookSecret
	return &d
}

// maxHook is the size of the largest payload that GitHub sends.
const maxHook = 25 << 20

func (q *hookQueue) enqueue(d *delivery) {
	if len(d.Payload) > maxHook {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.bend(d) {
		if q.holding || one.hold {
			q.held = append(q.held, one.delivery)
			continue
		}
		q.queue = append(q.queue, one.delivery)
	}
	q.signal()
}

// send queues the delivery of a payload.
func (q *hookQueue) send(d delivery, payload obj) { q.enqueue(q.newDelivery(d, payload)) }

func (q *hookQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run delivers until the Sim is closed.
func (q *hookQueue) run() {
	for {
		q.mu.Lock()
		var batch []*delivery
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
			case <-q.sim.ctx.Done():
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
func (q *hookQueue) deliver(d *delivery) {
	start := time.Now()
	d.ReqHeader = hookHeader(d, q.sim.app.ID)
	q.record(d)
	code, header, body, err := q.post(d)
	q.mu.Lock()
	defer q.mu.Unlock()
	d.DeliveredAt, d.Duration = q.sim.cfg.Now().UTC(), time.Since(start)
	d.StatusCode, d.RespHeader, d.RespBody = code, header, body
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
	if !d.Stranger {
		q.log = append(q.log, d)
	}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// errRefused simulates a host that cannot be reached.
var errRefused = errors.New("connection refused")

func (q *hookQueue) post(d *delivery) (int, http.Header, string, error) {
	if d.URL == "" {
		return 0, nil, "", errRefused
	}
	ctx, cancel := context.WithTimeout(q.sim.ctx, q.sim.cfg.HookTimeout)
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

// hookHeader returns the headers that GitHub sends with a payload.
func hookHeader(d *delivery, appID int64) http.Header {
	mac := hmac.New(sha256.New, []byte(d.Secret))
	mac.Write(d.Payload)
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "*/*")
	h.Set("User-Agent", "GitHub-Hookshot/5ca1ab1")
	h.Set("X-GitHub-Event", d.Event)
	h.Set("X-GitHub-Delivery", d.GUID)
	h.Set("X-GitHub-Hook-ID", itoa(appID))
	h.Set("X-GitHub-Hook-Installation-Target-ID", itoa(appID))
	h.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
	h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return h
}

// WaitHooks waits until all deliveries are done, except those that are held, or ctx ends.
func (s *Sim) WaitHooks(ctx context.Context) error {
	q := s.hooks
	stop := context.AfterFunc(ctx, q.idle.Broadcast)
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.queue)+q.busy > 0 && ctx.Err() == nil && s.ctx.Err() == nil {
		q.idle.Wait()
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for webhooks: %w", err)
	}
	return nil
}
