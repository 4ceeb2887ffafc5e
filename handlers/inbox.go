package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// Deliveries is the part of the store that the inbox uses.
type Deliveries interface {
	// PutDelivery must not retain the payload, because its memory is reused.
	PutDelivery(ctx context.Context, d store.Delivery) (isNew bool, err error)
	PendingDeliveries(ctx context.Context, limit int) ([]store.Delivery, error)
	SpendDelivery(ctx context.Context, guid string) error
	FailDelivery(ctx context.Context, guid string, cause error) (failures int, err error)
}

// Applier applies events; *store.Store implements it.
type Applier interface {
	Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error)
	Wake(ctx context.Context) <-chan struct{}
}

// Inbox stores webhooks and later processes them.
type Inbox struct {
	store  Deliveries
	apply  Applier
	mapper *Mapper
	log    zerolog.Logger
	now    func() time.Time
	// Received counts deliveries by event, for metrics; it may be nil.
	Received func(event string, isNew bool)
	// Applied is called after the events of a delivery were applied; it may be nil.
	Applied func()
}

// NewInbox returns an Inbox.
func NewInbox(store Deliveries, apply Applier, mapper *Mapper, log zerolog.Logger, now func() time.Time) *Inbox {
	return &Inbox{store: store, apply: apply, mapper: mapper, log: log, now: now}
}

// Insert stores a delivery under its GUID unless that is known. When it returns nil the delivery is durable. It does
// not retain the payload.
func (b *Inbox) Insert(ctx context.Context, guid, event string, payload []byte) error {
	isNew, err := b.store.PutDelivery(ctx, store.Delivery{GUID: guid, Event: event, Payload: payload, Received: b.now()})
	if err != nil {
		return fmt.Errorf("store delivery %s: %w", guid, err)
	}
	if b.Received != nil {
		b.Received(event, isNew)
	}
	return nil
}

// batch is the number of deliveries read at once.
const batch = 50

// Run maps and applies deliveries in the order of their arrival until ctx ends.
func (b *Inbox) Run(ctx context.Context) error {
	wake := b.apply.Wake(ctx)
	for {
		n, err := b.Work(ctx)
		if err != nil && ctx.Err() == nil {
			b.log.Error().Err(err).Msg("failed to read the inbox")
		}
		if n == batch && ctx.Err() == nil {
			continue
		}
		if _, err := clock.SleepOrWake(ctx, 5*time.Second, wake); err != nil {
			return nil
		}
	}
}

// Drain maps and applies deliveries until none is pending. One that cannot be processed is set aside after a few failures.
func (b *Inbox) Drain(ctx context.Context) error {
	for ctx.Err() == nil {
		if n, err := b.Work(ctx); n == 0 || err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Work maps and applies pending deliveries, at most batch of them, and returns their number.
func (b *Inbox) Work(ctx context.Context) (int, error) {
	list, err := b.store.PendingDeliveries(ctx, batch)
	for _, d := range list {
		if ctx.Err() != nil {
			break
		}
		b.processOrFail(ctx, d)
	}
	return len(list), err
}

// processOrFail maps one delivery and applies its events; the last event spends the delivery. After a few failures a delivery is
// set aside and listed for the operator.
func (b *Inbox) processOrFail(ctx context.Context, d store.Delivery) {
	log := b.log.With().Str("delivery", d.GUID).Str("event", d.Event).Logger()
	err := b.processDelivery(ctx, d, log)
	if err == nil || errors.Is(err, store.ErrSpent) || ctx.Err() != nil {
		return
	}
	n, ferr := b.store.FailDelivery(ctx, d.GUID, err)
	log.Error().Err(err).Int("failures", n).AnErr("store", ferr).Msg("failed to process a delivery")
}

func (b *Inbox) processDelivery(ctx context.Context, d store.Delivery, log zerolog.Logger) error {
	events, reason, err := b.mapper.Map(ctx, d.Event, d.GUID, d.Payload)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		log.Debug().Str("reason", reason).Msg("delivery ignored")
		return b.store.SpendDelivery(ctx, d.GUID)
	}
	for i, e := range events {
		ack := store.Ack{}
		if i == len(events)-1 {
			ack.Delivery = d.GUID
		}
		applied, err := b.apply.Apply(ctx, e, ack)
		if err != nil {
			return err
		}
		log.Info().Str("task", e.Task.String()).Str("kind", string(e.Kind())).Str("by", e.By.Login).Bool("changed", applied.Changed).Str("note", applied.Note).Msg("event applied")
	}
	if b.Applied != nil {
		b.Applied()
	}
	return nil
}
