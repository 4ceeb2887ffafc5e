package client

import (
	"net/http"
	"time"
)

// Request is one HTTP request that was answered or failed, for metrics.
type Request struct {
	Op           string // the operation, without names: "create comment"
	Method       string
	Status       int // 0 without a response
	Installation int64
	Took         time.Duration
	Limited      LimitKind // the limit that was exceeded, if any
	API          string    // rest or graphql
	Remaining    int       // of the API's hourly limit; -1 if the response did not say
}

// warnOfSunset logs, once per operation, that GitHub will remove an API that errand uses.
func (t *transport) warnOfSunset(op *Operation, resp *http.Response) {
	deprecation, sunset := resp.Header.Get("Deprecation"), resp.Header.Get("Sunset")
	if deprecation == "" && sunset == "" {
		return
	}
	t.mu.Lock()
	known := t.sunset[op.name]
	t.sunset[op.name] = true
	t.mu.Unlock()
	if !known {
		t.log.Warn().Str(logOp, op.description).
			Str(logMethod, resp.Request.Method).Str(logPath, resp.Request.URL.Path).Int(logStatus, resp.StatusCode).
			Str(logDeprecation, deprecation).Str(logSunset, sunset).Msg("GitHub will remove an API that errand uses")
	}
}
