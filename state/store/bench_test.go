package store

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

func benchStore(b *testing.B) *Store {
	b.Helper()
	db, err := boltkv.Open(filepath.Join(b.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	s, err := Open(b.Context(), db, Options{})
	if err != nil {
		b.Fatal(err)
	}
	s.next = spelledOut
	return s
}

// BenchmarkApply measures one durable event on tasks of a usual and of a large size.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{10 << 10, 300 << 10} {
		b.Run(fmt.Sprintf("task=%dkB", size>>10), func(b *testing.B) {
			s := benchStore(b)
			for b.Loop() {
				if _, err := s.Apply(b.Context(), spelled(task1, fmt.Sprintf("body=%d", size)), Ack{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkClaim measures a claim and the end of its job among many tasks whose jobs wait.
func BenchmarkClaim(b *testing.B) {
	for _, tasks := range []int{10, 1000} {
		b.Run(fmt.Sprintf("tasks=%d", tasks), func(b *testing.B) {
			s := benchStore(b)
			for i := range tasks {
				e := spelled(state.TaskKey{Repo: 2, Issue: i + 1}, "", "control/due+1h", "status/s+1h")
				if _, err := s.Apply(b.Context(), e, Ack{}); err != nil {
					b.Fatal(err)
				}
			}
			lease := func(state.JobKind) time.Duration { return time.Minute }
			ack := Ack{}
			for b.Loop() {
				if _, err := s.Apply(b.Context(), spelled(task1, "", "work/a"), ack); err != nil {
					b.Fatal(err)
				}
				job, err := s.Claim(b.Context(), ClaimReq{Lease: lease})
				if err != nil || job == nil {
					b.Fatal(job, err)
				}
				ack = Ack{Job: job.ID, Epoch: job.Epoch}
			}
		})
	}
}
