package admin_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
)

// counting counts the pages of tasks that are read.
type counting struct {
	*memory
	reads atomic.Int64
}

func (c *counting) AllTasks(ctx context.Context, after state.TaskKey, limit int) ([]*state.Task, error) {
	c.reads.Add(1)
	return c.memory.AllTasks(ctx, after, limit)
}

// TestManyEndedTasks: all tasks are found by name, the newest are shown, all are counted, and a page view does not scan
// the whole store.
func TestManyEndedTasks(t *testing.T) {
	t.Parallel()
	const n = 650
	store := &counting{memory: &memory{}}
	for i := 1; i <= n; i++ {
		task := sampleTask(i, fmt.Sprintf("task %d.", i), state.PhaseDone)
		task.Since = noon.Add(time.Duration(i) * time.Second)
		store.tasks = append(store.tasks, task)
	}
	url := serve(t, admin.Config{Store: store, Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon.Add(time.Hour) }})
	page := func(path string) string {
		t.Helper()
		status, body := fetch(t, url+path, nil)
		if status != 200 {
			t.Fatalf("%s: status %d", path, status)
		}
		return body
	}
	body := page("/status")
	want(t, body, "task 650.", "task 551.", "The 100 that ended last.", "650")
	wantNot(t, body, "task 550.", "task 1.")
	want(t, page("/tasks/acme/shop/1"), "task 1.")
	wantLines(t, page("/metrics"), fmt.Sprintf(`errand_tokens{direction="input"} %s`, "5.265e+07"), `errand_tasks{phase="done"} 650`)
	before := store.reads.Load()
	page("/status")
	page("/tasks/acme/shop/300")
	if got := store.reads.Load(); got != before {
		t.Errorf("the store was scanned again: %d pages", got-before)
	}
	late := sampleTask(n+1, "one more.", state.PhaseCancelled)
	late.Since = noon.Add(2 * time.Hour)
	store.tasks = append(store.tasks, late)
	first, _, _ := strings.Cut(page("/status"), "task 650.")
	want(t, first, "one more.")
}
