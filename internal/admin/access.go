package admin

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Missing is a permission or event that an installation of the App does not grant.
type Missing struct {
	Account    string `json:"account"`
	Permission string `json:"permission,omitempty"`
	Needed     string `json:"needed,omitempty"`  // the level: read or write
	Granted    string `json:"granted,omitempty"` // the level: none, read or write
	Event      string `json:"event,omitempty"`
	Required   bool   `json:"required"` // tasks wait for it
	For        string `json:"for"`      // its purpose
	URL        string `json:"url,omitempty"`
}

// access emits a metric for each missing permission or event.
func (c *collector) access(out chan<- prometheus.Metric) {
	if c.missing == nil {
		return
	}
	d := desc("app_missing", "Always 1, for each permission or event that an installation of the App does not grant.", "account", "permission", "event", "required")
	for _, m := range c.missing() {
		gauge(out, d, 1, m.Account, m.Permission, m.Event, strconv.FormatBool(m.Required))
	}
}
