package admin

import (
	"encoding/json"
	"net/http"
)

// doctor answers with the report of `errand doctor`, as JSON. It asks GitHub, the VM provider and the models' providers, so only one
// report is made at a time.
func (p *pages) doctor(w http.ResponseWriter, r *http.Request) {
	select {
	case p.examining <- struct{}{}:
		defer func() { <-p.examining }()
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(p.cfg.Doctor(r.Context())); err != nil {
		p.cfg.Log.Debug().Err(err).Msg("failed to send a doctor's report")
	}
}
