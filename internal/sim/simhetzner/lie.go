package simhetzner

import (
	"encoding/json"
	"fmt"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

// hides reports whether lists omit an object.
func (f *Fault) hides(id int64, name string) bool {
	return f != nil && f.hide != nil && f.hide.MatchString(fmt.Sprintf("%d %s", id, name))
}

// falsify changes the status in a response.
func (f *Fault) falsify(ans answer) answer {
	if f == nil || f.Claim == "" || ans.body == nil {
		return ans
	}
	raw, err := json.Marshal(ans.body)
	if err != nil {
		return ans // encoding the response returns the same error
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return ans
	}
	for _, key := range []string{"server", "image", "action"} {
		setClaimedStatus(body[key], f.Claim)
		list, _ := body[key+"s"].([]any)
		for _, v := range list {
			setClaimedStatus(v, f.Claim)
		}
	}
	return answer{ans.status, body}
}

func setClaimedStatus(v any, status string) {
	if object, ok := v.(map[string]any); ok {
		object["status"] = status
	}
}

// Twin executes an order a second time, late: it creates another server with the name, labels and all other data of the
// server with this ID, though names should be unique. It returns the new ID, 0 if there is no such server.
func (s *Sim) Twin(id int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	s.events.settle(now)
	sv := s.servers[id]
	if sv == nil {
		return 0
	}
	o := &order{
		typ: sv.typ, location: sv.location, image: sv.image, labels: sv.labels, keys: sv.keys, firewalls: sv.firewalls,
		v4: sv.v4 != nil, v6: sv.v6 != nil, start: true,
	}
	if o.image == nil { // it has been deleted since
		o.image = s.images.find(schema.IDOrName{Name: "ubuntu-24.04"}, sv.typ.Architecture)
	}
	o.Name, o.UserData = sv.name, sv.userData
	second := s.newServer(o, now)
	s.bootServer(&call{now: now}, second, o)
	return second.id
}
