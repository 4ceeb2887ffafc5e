package fleet

import (
	"fmt"
	"sync"
	"time"
)

// AlarmAccount is the kind of the alarm for a reached account limit.
const AlarmAccount = "account"

// ID of that alarm, and how long it lasts after the last refusal.
const (
	alarmLimit           = "limit"
	accountLimitDuration = time.Hour
)

// An accountLimit remembers that the provider's limit for the account is reached, and raises an alarm about it.
type accountLimit struct {
	*core

	mu      sync.Mutex
	alarm   Alarm     // its Kind is empty if there is no alarm
	last    time.Time // the last refusal
	refused time.Time // when the last order of a VM began, if it was refused; zero if it succeeded
}

// raiseAlarm raises the alarm after a refusal.
func (l *accountLimit) raiseAlarm(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, since := l.cfg.Now(), l.alarm.Since
	if l.alarm.Kind == "" || now.Sub(l.last) >= accountLimitDuration {
		since = now
		l.cfg.Log.Error().Err(cause).Msg("the provider's limit for this account is reached")
	}
	l.last, l.alarm = now, Alarm{
		Kind: AlarmAccount, ID: alarmLimit, Since: since,
		Explanation: fmt.Sprintf("the provider's limit for this account is reached (%s): request a higher limit, or set `limits.vms` so that errand stays below it", shortenError(cause)),
	}
}

// endAlarm ends the alarm after a successful order.
func (l *accountLimit) endAlarm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alarm, l.last = Alarm{}, time.Time{}
}

// activeAlarm returns the alarm if there is one.
func (l *accountLimit) activeAlarm() (Alarm, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alarm, l.alarm.Kind != "" && l.cfg.Now().Sub(l.last) < accountLimitDuration
}

// recordOrder records how an order of a VM ended: refused because of the limit, with the time at which it began, or
// successful, with zero.
func (l *accountLimit) recordOrder(refused time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = refused
}

// refusedAt returns when the last order began that was refused because of the limit, or zero if an order has succeeded since.
func (l *accountLimit) refusedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}
