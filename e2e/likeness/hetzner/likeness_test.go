package hetzner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// said names the directory with the simulator's recorded answers in earlier tests.
const said = "ERRAND_SAID_HETZNER"

// exception is an allowed difference between a recording and the description, documented in docs/assumptions.md.
type exception struct {
	where, what string // regular expressions that must match completely
	why         string
}

func exceptions() []exception {
	return []exception{
		{`.*`, `.* missing property 'datacenter'`, "datacenters were removed from the answers after the description was copied"},
		{`.*`, `.*/locations/\* additional properties ('available', 'recommended'|'recommended', 'available') not allowed`,
			"the availability of types was added after the description was copied"},
		{`POST /servers(/\{id\}/actions/\w+)? 201`, `request: /(image|server_type|ssh_keys/\*) got number, want string`, "the client sends ids as numbers"},
		{`GET /actions 200`, `there is no parameter (page|sort)`, "the client requests pages of actions, too"},
		{`POST .*/create_image 201`, `request: /description got null, want string`, "the client sends null for an image without description"},
	}
}

func (e exception) covers(u unlike) bool {
	whole := func(expr, s string) bool { return regexp.MustCompile(`^(?:` + expr + `)$`).MatchString(s) }
	return whole(e.where, u.where) && whole(e.what, u.what)
}

// TestExceptionsAreDocumented: docs/assumptions.md contains the reason of every exception.
func TestExceptionsAreDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/assumptions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exceptions() {
		if !strings.Contains(strings.Join(strings.Fields(string(raw)), " "), e.why) {
			t.Errorf("docs/assumptions.md lacks the exception for %s: %q", e.where, e.why)
		}
	}
}

// TestJudgeNotices: answers with a missing field, another type or an unknown field are reported.
func TestJudgeNotices(t *testing.T) {
	t.Parallel()
	d := read(t)
	good := `{"ssh_key":{"id":1,"name":"k","fingerprint":"f","public_key":"p","labels":{},"created":"2026-01-01T00:00:00Z"}}`
	cases := map[string]struct{ from, to, what string }{
		"unchanged": {},
		"missing":   {`"name":"k",`, ``, "/ssh_key missing property 'name'"},
		"kind":      {`"id":1`, `"id":"1"`, "/ssh_key/id got string, want integer"},
		"invented":  {`"id":1`, `"id":1,"shape":"round"`, "/ssh_key additional properties 'shape' not allowed"},
		"no time":   {`2026-01-01T00:00:00Z`, `today`, "/ssh_key/created 'today' is not valid date-time"},
		"null":      {`"labels":{}`, `"labels":null`, "/ssh_key/labels got null, want object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			body := strings.Replace(good, c.from, c.to, 1)
			found, err := d.judge(simhetzner.Recorded{Method: "GET", Route: "/ssh_keys/{id}", Status: 200, Body: []byte(body)})
			if err != nil || (c.what == "") != (len(found) == 0) {
				t.Fatalf("found %v, %v", found, err)
			}
			if c.what != "" && !strings.HasPrefix(found[0].what, c.what) {
				t.Errorf("found %q, want %q", found[0].what, c.what)
			}
		})
	}
}

// report fails for differences without an exception, and returns the exceptions that were used.
func report(t *testing.T, d *described, recs []simhetzner.Recorded) (needed []int) {
	t.Helper()
	needed = make([]int, len(exceptions()))
	bad := map[unlike]int{}
	for _, rec := range recs {
		found, err := d.judge(rec)
		if err != nil {
			t.Errorf("%s %s: %v", rec.Method, rec.Route, err)
		}
		for _, u := range found {
			i := slices.IndexFunc(exceptions(), func(e exception) bool { return e.covers(u) })
			if i < 0 {
				bad[u]++
				continue
			}
			needed[i]++
		}
	}
	lines := []string{}
	for u, n := range bad {
		lines = append(lines, fmt.Sprintf("%s: %s (%d times)", u.where, u.what, n))
	}
	slices.Sort(lines)
	for _, l := range lines {
		t.Error(l)
	}
	return needed
}

// TestLikeness checks all answers of the simulator during the other tests.
func TestLikeness(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(said)
	if dir == "" {
		t.Skipf("simhetzner's recorded answers are checked after all other tests: `make test-full` does so and sets %s", said)
	}
	recs := recordings(t, dir)
	d := read(t)
	report(t, d, recs)
	t.Logf("likeness: %d answers of %d operations of Hetzner's interface", len(recs), len(d.used))
	if len(recs) < 100 {
		t.Errorf("only %d answers were recorded", len(recs))
	}
}

// TestTour uses every function of the simulator and checks the answers.
func TestTour(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := simhetzner.NewClock(time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC))
	sim := simhetzner.New(simhetzner.Config{Now: clock.Now, Record: dir})
	srv := httptest.NewServer(sim)
	t.Cleanup(func() {
		sim.Close()
		srv.Close()
	})
	ids := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(tour), "\n") {
		clock.Advance(time.Minute)
		ask(t, srv.URL, strings.TrimSpace(line), ids)
	}
	d := read(t)
	for i, n := range report(t, d, recordings(t, dir)) {
		if n == 0 {
			t.Errorf("the exception %+v is unused: remove it here and in docs/assumptions.md", exceptions()[i])
		}
	}
	if got := slices.Sorted(maps.Keys(d.used)); len(got) < 54 {
		t.Errorf("the tour covered only %d operations", len(got))
	}
}

// tour has one request per line: the expected status, method, path, body. {NAME} is the ID of the object that the line
// with NAME= created.
const tour = `
	200 GET /pricing
	200 GET /server_types
	200 GET /server_types/101
	200 GET /locations
	200 GET /locations/1
	200 GET /images?type=system&architecture=x86&status=available&include_deprecated=true&sort=id
	key=201 POST /ssh_keys {"name":"k","public_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIeAyWUnRTFpP8wqMuBOCgUbHGXYfZR5/6ayLUhTfFxR","labels":{"a":"b"}}
	200 GET /ssh_keys?name=k&label_selector=a
	200 GET /ssh_keys/{key}
	200 PUT /ssh_keys/{key} {"name":"k2","labels":{"a":"c"}}
	409 POST /ssh_keys {"name":"k2","public_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIeAyWUnRTFpP8wqMuBOCgUbHGXYfZR5/6ayLUhTfFxR"}
	fw=201 POST /firewalls {"name":"f","rules":[{"direction":"in","protocol":"tcp","port":"22","source_ips":["0.0.0.0/0","::/0"]}]}
	200 GET /firewalls
	200 GET /firewalls/{fw}
	200 PUT /firewalls/{fw} {"name":"f2","labels":{"a":"b"}}
	201 POST /firewalls/{fw}/actions/set_rules {"rules":[{"direction":"out","protocol":"icmp","destination_ips":["0.0.0.0/0"],"description":"ping"}]}
	net=201 POST /networks {"name":"n","ip_range":"10.0.0.0/16","subnets":[{"type":"cloud","ip_range":"10.0.1.0/24","network_zone":"eu-central"}]}
	200 GET /networks
	200 GET /networks/{net}
	200 PUT /networks/{net} {"name":"n2"}
	vol=201 POST /volumes {"name":"v","size":10,"location":"fsn1","format":"ext4"}
	200 GET /volumes
	200 GET /volumes/{vol}
	200 PUT /volumes/{vol} {"labels":{"a":"b"}}
	ip=201 POST /primary_ips {"name":"i","type":"ipv4","assignee_type":"server","location":"fsn1"}
	200 GET /primary_ips
	200 GET /primary_ips/{ip}
	200 PUT /primary_ips/{ip} {"name":"i2","auto_delete":false}
	422 POST /servers {"name":"_","server_type":"cx23","image":"debian-13"}
	vm=201 POST /servers {"name":"vm","server_type":"cx23","image":"ubuntu-24.04","location":"fsn1","ssh_keys":[{key}],"firewalls":[{"firewall":{fw}}],"networks":[{net}],"volumes":[{vol}],"user_data":"#cloud-config","labels":{"a":"b"},"public_net":{"enable_ipv4":true,"enable_ipv6":true,"ipv4":{ip}}}
	200 GET /servers?name=vm&label_selector=a%3Db&status=running&sort=created&page=1&per_page=50
	200 GET /servers/{vm}
	200 PUT /servers/{vm} {"name":"vm2","labels":{"a":"c"}}
	201 POST /servers/{vm}/actions/reboot
	201 POST /servers/{vm}/actions/reset
	201 POST /servers/{vm}/actions/shutdown
	201 POST /servers/{vm}/actions/poweroff
	img=201 POST /servers/{vm}/actions/create_image {"type":"snapshot","description":"d","labels":{"a":"b"}}
	423 POST /servers/{vm}/actions/poweron
	200 GET /images?label_selector=a
	201 POST /servers/{vm}/actions/create_image {"type":"snapshot","description":null}
	200 GET /servers?sort=id%3Aasc
	200 GET /images?label_selector=a
	200 GET /images/{img}
	200 GET /images/{img}
	200 GET /images?bound_to={vm}&name=x&label_selector=a&page=1&per_page=2
	200 PUT /images/{img} {"description":"e","labels":{"a":"c"}}
	201 POST /servers/{vm}/actions/change_type {"server_type":"cx33","upgrade_disk":false}
	201 POST /servers/{vm}/actions/change_protection {"delete":false,"rebuild":false}
	201 POST /servers/{vm}/actions/detach_from_network {"network":{net}}
	201 POST /servers/{vm}/actions/attach_to_network {"network":{net},"ip":"10.0.1.9"}
	201 POST /servers/{vm}/actions/poweron
	201 POST /servers/{vm}/actions/rebuild {"image":"debian-13","user_data":"#cloud-config"}
	200 GET /servers/{vm}
	200 GET /servers/{vm}/actions
	200 GET /servers/actions
	201 POST /firewalls/{fw}/actions/remove_from_resources {"remove_from":[{"type":"server","server":{"id":{vm}}}]}
	201 POST /firewalls/{fw}/actions/apply_to_resources {"apply_to":[{"type":"server","server":{"id":{vm}}}]}
	201 POST /volumes/{vol}/actions/detach
	201 POST /volumes/{vol}/actions/attach {"server":{vm}}
	201 POST /volumes/{vol}/actions/resize {"size":20}
	act=200 DELETE /servers/{vm}
	200 GET /actions/{act}
	200 GET /actions?id={act}&page=1&sort=id
	404 GET /servers/{vm}
	bare=201 POST /servers {"name":"bare","server_type":"cx23","image":{img},"networks":[{net}],"public_net":{"enable_ipv4":false,"enable_ipv6":false}}
	200 GET /servers/{bare}
	204 DELETE /images/{img}
	200 GET /servers/{bare}
	200 DELETE /servers/{bare}
	204 DELETE /ssh_keys/{key}
	204 DELETE /firewalls/{fw}
	204 DELETE /networks/{net}
	204 DELETE /volumes/{vol}
	204 DELETE /primary_ips/{ip}
	410 GET /datacenters
`

// made returns the ID of the object in an answer: of the action if there is no other object.
func made(raw []byte) string {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(raw, &body) // an answer without a body has no object
	for _, key := range []string{"server", "image", "volume", "firewall", "network", "ssh_key", "primary_ip", "action"} {
		var thing struct{ ID json.Number }
		if json.Unmarshal(body[key], &thing) == nil && thing.ID != "" {
			return thing.ID.String()
		}
	}
	return ""
}

// ask sends the request of one line.
func ask(t *testing.T, url, line string, ids map[string]string) {
	t.Helper()
	for name, id := range ids {
		line = strings.ReplaceAll(line, "{"+name+"}", id)
	}
	words := strings.SplitN(line, " ", 4)
	name, status, named := strings.Cut(words[0], "=")
	if !named {
		name, status = "", words[0]
	}
	body := ""
	if len(words) == 4 {
		body = words[3]
	}
	req, err := http.NewRequestWithContext(t.Context(), words[1], url+"/v1"+words[2], bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer any")
	res, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil || fmt.Sprint(res.StatusCode) != status {
		t.Errorf("%s: %d %s %v", line, res.StatusCode, raw, err)
	}
	if named {
		ids[name] = made(raw)
	}
}
