package simhetzner

import (
	"encoding/json"
	"fmt"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

// hides reports whether lists leave an object out.
func (f *Fault) hides(id int64, name string) bool {
	return f != nil && f.hide != nil && f.hide.MatchString(fmt.Sprintf("%d %s", id, name))
}

// falsify has an answer say what is not so.
func (f *Fault) falsify(ans answer) answer {
	if f == nil || f.Claim == "" || ans.body == nil {
		return ans
	}
	raw, err := json.Marshal(ans.body)
	if err != nil {
		return ans // the writer of the answer finds the same error
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return ans
	}
	for _, key := range []string{"server", "image", "action"} {
		claim(body[key], f.Claim)
		list, _ := body[key+"s"].([]any)
		for _, v := range list {
			claim(v, f.Claim)
		}
	}
	return answer{ans.status, body}
}

func claim(v any, status string) {
	if object, ok := v.(map[string]any); ok {
		object["status"] = status
	}
}

// Twin has an order land a second time, late: there is another server then with the name, the labels and all else of
// the one of this id, though names should be unique. It returns the new id, 0 if there is no such server.
func (s *Sim) Twin(id int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	s.settle(now)
	sv := s.servers[id]
	if sv == nil {
		return 0
	}
	o := &order{
		typ: sv.typ, location: sv.location, image: sv.image, labels: sv.labels, keys: sv.keys, firewalls: sv.firewalls,
		v4: sv.v4 != nil, v6: sv.v6 != nil, start: true,
	}
	if o.image == nil { // it has been deleted since
		o.image = s.findImage(schema.IDOrName{Name: "ubuntu-24.04"}, sv.typ.Architecture)
	}
	o.Name, o.UserData = sv.name, sv.userData
	second := s.newServer(o, now)
	s.boot(&call{now: now}, second, o)
	return second.id
}
