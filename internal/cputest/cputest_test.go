package cputest

import (
	"runtime"
	"testing"
	"time"
)

// TestTimeCountsOwnWork: waiting is not counted, and neither is the work of other goroutines; own work is.
func TestTimeCountsOwnWork(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux counts the time of a thread")
	}
	done := make(chan bool)
	waited := Time(t, func() {
		go func() { spin(100 * time.Millisecond); close(done) }()
		<-done
	})
	if waited > 50*time.Millisecond {
		t.Errorf("waiting for another goroutine counted as %s, want almost nothing", waited)
	}
	if worked := Time(t, func() { spin(100 * time.Millisecond) }); worked < time.Millisecond {
		t.Errorf("work of 100 ms counted as %s", worked)
	}
}

func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		_ = end
	}
}
