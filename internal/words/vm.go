package words

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
)

// VMEnd says why a VM ended. The list is closed: the fleet's reasons, and those of tasks.
func VMEnd(why string) string {
	switch why {
	case "done":
		return "its task was done"
	case "cancelled":
		return "its task was cancelled"
	case "failed":
		return "its task had failed"
	case "fresh", "retry_fresh":
		return "a new one was asked for"
	case "replaced":
		return "another one took its place"
	case "asleep":
		return "its work was put away"
	case "limit":
		return "the VM hours or the money for VMs were used up"
	case "orphan":
		return "no task owned it"
	case "unusable":
		return "it could not be used"
	case "create_failed":
		return "it never came up"
	case "idle":
		return "it had no contact with errand"
	case "crashed":
		return "it ended by itself"
	case "host_stopped":
		return "its host stopped it"
	case "vanished":
		return "it was gone, and nothing says why"
	case state.VMDiskFull:
		return "its disk was full"
	case "operator":
		return "the operator ended it"
	}
	return Plain(why)
}

// Asleep says what a task's work was put away as, and how large that is.
func Asleep(a *state.Asleep) string {
	what := "archive"
	if a.Mode == state.SleepSnapshot {
		what = "snapshot"
	}
	if a.Bytes > 0 {
		what += " of " + Bytes(a.Bytes)
	}
	return what
}

// Bytes shows a size in the largest unit of 1000 that it fills.
func Bytes(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// Cash shows millionths of a currency in hundredths; what is not nothing is never shown as nothing.
func Cash(micro int64, currency string) string {
	sign, known := map[string]string{"EUR": "€", "USD": "$"}[currency]
	if !known {
		sign = ""
		currency = " " + Plain(currency)
	} else {
		currency = ""
	}
	if micro > 0 && micro < 5_000 {
		return "under " + sign + "0.01" + currency
	}
	return sign + fmt.Sprintf("%.2f", float64(micro)/1e6) + currency
}

// VMUse says what a task's VMs took: the time that was paid for, and what it cost.
func VMUse(u state.VMUse) string {
	return fmt.Sprintf("%s in %s, %s", Span(u.Hours), Many(u.VMs, "VM"), Cash(u.Micro, u.Currency))
}

// Rest says what becomes of an idle VM: until when it is paid for, or that it waits.
func Rest(v *state.VM, now time.Time) string {
	if until := v.PaidUntil(now); !until.IsZero() {
		return "parked until " + until.UTC().Format("15:04") + " UTC (paid)"
	}
	return "parked"
}
