package simhetzner

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// Object is one resource of the project, for leak tests.
type Object struct {
	Kind    string            `json:"kind"` // server, image (snapshots only), ssh_key, firewall, network, volume, primary_ip
	ID      int64             `json:"id"`
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Status  string            `json:"status,omitempty"` // status of a server or image
	Type    string            `json:"type,omitempty"`   // type of a server or address
	Where   string            `json:"location,omitempty"`
	IP      string            `json:"ip,omitempty"`     // a server's IPv4, or the address
	Server  int64             `json:"server,omitempty"` // server that has it, or from which an image was created
	Created time.Time         `json:"created"`
	// Inconsistent marks an image that may be unreadable: its server was not off, or its power was cut without a sync.
	Inconsistent bool `json:"inconsistent,omitempty"`
}

// Objects lists the project's current resources without stock images; of one kind, or all for "".
func (s *Sim) Objects(kind string) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events.settle(s.cfg.Now())
	var all []Object
	all = append(all, objects(kind, "server", s.servers, func(sv *server, o *Object) bool {
		o.Status, o.Type, o.Where = sv.status, sv.typ.Name, sv.location.Name
		if sv.v4 != nil {
			o.IP = sv.v4.address()
		}
		return true
	})...)
	all = append(all, objects(kind, "image", s.images, func(i *image, o *Object) bool {
		o.Status, o.Name, o.Server, o.Inconsistent = i.status, i.description, i.fromID, i.inconsistent
		return i.kind == "snapshot"
	})...)
	all = append(all, objects(kind, "ssh_key", s.keys, nil)...)
	all = append(all, objects(kind, "firewall", s.firewalls, nil)...)
	all = append(all, objects(kind, "network", s.networks, nil)...)
	all = append(all, objects(kind, "volume", s.volumes, func(v *volume, o *Object) bool {
		if v.server != nil {
			o.Server = v.server.id
		}
		return true
	})...)
	return append(all, objects(kind, "primary_ip", s.primaryIPs, func(p *primaryIP, o *Object) bool {
		o.Type, o.Where, o.IP = p.kind, p.location.Name, p.address()
		if p.server != nil {
			o.Server = p.server.id
		}
		return true
	})...)
}

func objects[T object](want, kind string, all map[int64]T, fill func(T, *Object) bool) []Object {
	if want != "" && want != kind {
		return nil
	}
	found := make([]T, 0, len(all))
	for _, v := range all {
		found = append(found, v)
	}
	_ = sortBy(found, nil) // without a sort order sortBy cannot fail
	var out []Object
	for _, v := range found {
		o := Object{Kind: kind}
		var labels map[string]string
		o.ID, o.Name, o.Created, labels = v.about()
		o.Labels = maps.Clone(labels)
		if fill == nil || fill(v, &o) {
			out = append(out, o)
		}
	}
	return out
}

// Settle processes all due events, as any request does.
func (s *Sim) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events.settle(s.cfg.Now())
}

// NextEvent returns the time of the next scheduled event, for clocks that jump; false if there is none.
func (s *Sim) NextEvent() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events.next()
}

// ownRoutes registers the simulator's control routes, for tests that use it from another process.
func (s *Sim) ownRoutes(mux *http.ServeMux) {
	show := func(v func() any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, v()) }
	}
	mux.Handle("GET /_sim/objects", show(func() any { return s.Objects("") }))
	mux.Handle("GET /_sim/bill", show(func() any { return s.Bill() }))
	mux.Handle("GET /_sim/requests", show(func() any { return s.Requests() }))
	mux.HandleFunc("POST /_sim/faults", func(w http.ResponseWriter, r *http.Request) {
		var f Fault
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&f)
		if err == nil {
			err = s.Fault(f)
		}
		writeControlAnswer(w, err)
	})
	mux.HandleFunc("DELETE /_sim/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.ClearFaults()
		writeControlAnswer(w, nil)
	})
	mux.HandleFunc("POST /_sim/stock", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Type, Location string
			Left           int
		}
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&in)
		if err == nil {
			if in.Type == "" {
				s.SetStockAll(in.Left)
			} else {
				s.SetStock(in.Type, in.Location, in.Left)
			}
		}
		writeControlAnswer(w, err)
	})
	mux.HandleFunc("POST /_sim/vanish/{id}", func(w http.ResponseWriter, r *http.Request) {
		var id int64
		_, err := fmt.Sscan(r.PathValue("id"), &id)
		if err == nil && !s.Vanish(id) {
			err = fmt.Errorf("there is no server %d", id)
		}
		writeControlAnswer(w, err)
	})
}

func writeControlAnswer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
