package words

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// VMEnd returns why a VM ended.
func VMEnd(why state.VMEndReason) string {
	switch why {
	case state.VMEndDone:
		return "its task was done"
	case state.VMEndCancelled:
		return "its task was canceled"
	case state.VMEndFailed:
		return "its task failed"
	case state.VMEndFresh, state.VMEndRetryFresh:
		return "a new one was requested"
	case state.VMEndReplaced:
		return "another VM replaced it"
	case state.VMEndAsleep:
		return "its task was suspended"
	case state.VMEndLimit:
		return "the limit on VM hours or VM cost was reached"
	case state.VMEndOrphan:
		return "it belonged to no task"
	case state.VMEndUnusable:
		return "it was unusable"
	case state.VMEndCreateFailed:
		return "it did not start"
	case state.VMEndIdle:
		return "it had no contact with errand"
	case state.VMEndCrashed:
		return "it shut down unexpectedly"
	case state.VMEndHostStopped:
		return "its host stopped it"
	case state.VMEndVanished:
		return "it disappeared for an unknown reason"
	case state.VMEndDiskFull:
		return "its disk was full"
	case state.VMEndOperator:
		return "the operator ended it"
	}
	return Plain(string(why))
}

// Asleep returns the kind and size of a suspended task's saved work.
func Asleep(a *state.SuspendedWork) string {
	text := "archive"
	if a.Mode == settings.SleepSnapshot {
		text = "snapshot"
	}
	if a.Bytes > 0 {
		text += " of " + Bytes(a.Bytes)
	}
	return text
}

// Bytes formats a size in bytes with the largest decimal unit that is not above it.
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

// Cash formats an amount in millionths of a currency with two decimals. A positive amount is never shown as 0.00.
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

// VMUse returns the paid hours and the cost of a task's VMs.
func VMUse(u state.VMUse) string {
	return fmt.Sprintf("%s in %s, %s", Span(u.Hours), Many(u.VMs, "VM"), Cash(u.Micro, u.Currency))
}

// Rest returns the state of an idle VM: the end of its paid time, if it is paid for, or just "parked".
func Rest(v *state.VM, now time.Time) string {
	if until := v.PaidUntil(now); !until.IsZero() {
		return "parked until " + until.UTC().Format("15:04") + " UTC (paid)"
	}
	return "parked"
}
