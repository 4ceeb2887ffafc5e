package boltkv_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// BenchmarkUpdate measures durable updates of 12 kB, the usual size of a webhook, by one writer and by 32. The second
// must cost far less per update, because writers share fsyncs.
func BenchmarkUpdate(b *testing.B) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			db := open(b, filepath.Join(b.TempDir(), "errand.db"), boltkv.Options{})
			value := bytes.Repeat([]byte("v"), 12<<10)
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range writers {
				group.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						key := fmt.Sprintf("delivery/%06d", n%10_000)
						err := db.Update(b.Context(), func(tx kv.Tx) error { return tx.Put(key, value) })
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
		})
	}
}
