package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// booked is a ledger in a store on disk, as in errand: each answer is a transaction that is on disk before the end of
// the answer is forwarded.
type booked struct{ s *store.Store }

func (l booked) Record(ctx context.Context, u gateway.UsageRecord) error {
	spent := event.Event{Task: u.Task, Run: u.Run, Payload: event.ModelCalled{Money: u.Cost, Waiting: u.Wait}}
	_, err := l.s.Apply(ctx, spent, store.Ack{Call: u.Reservation})
	return err
}

func (l booked) CapReached(ctx context.Context, open, need state.Money, _ bool) (*state.Waiting, error) {
	return l.s.Spending.CapReached(ctx, store.Caps{DayMicroUSD: 1e12, MonthMicroUSD: 1e12}, open, need, time.Now())
}

func (l booked) Left(ctx context.Context, open state.Money, _ bool) (state.Remaining, error) {
	return l.s.Spending.Left(ctx, store.Caps{DayMicroUSD: 1e12, MonthMicroUSD: 1e12}, open, time.Now())
}

// workingTask returns an ordinary task whose agent is running on a VM.
func workingTask(n int) *state.Task {
	t := sampleTask(n)
	t.Repo.Name, t.Phase = "big", state.PhaseImplementing
	t.Run = &state.Run{
		ID: fmt.Sprintf("1-%d-7", n), Kind: state.RunImplement, State: state.RunActive, Seq: 7, Started: t.Since,
		RunLaunch: state.RunLaunch{VM: fmt.Sprintf("vm-%d", n), Adapter: "claude", Model: "claude-sonnet-5"},
	}
	return t
}

// storeOf opens a store file with these tasks.
func storeOf(b *testing.B, tasks []*state.Task) *store.Store {
	b.Helper()
	db, err := boltkv.Open(filepath.Join(b.TempDir(), "errand.db"), boltkv.Options{})
	check(b, err)
	b.Cleanup(func() { check(b, db.Close()) })
	s, err := store.Open(b.Context(), db, store.Options{})
	check(b, err)
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	check(b, err)
	check(b, db.Update(b.Context(), func(tx kv.Tx) error {
		for _, t := range tasks {
			data, err := json.Marshal(t)
			if err != nil {
				return err
			}
			if err := tx.Put("task/"+t.Key.String(), enc.EncodeAll(data, []byte{1})); err != nil {
				return err
			}
			if err := tx.Put("open/"+t.Key.String(), []byte(t.Phase)); err != nil {
				return err
			}
		}
		return nil
	}))
	return s
}
