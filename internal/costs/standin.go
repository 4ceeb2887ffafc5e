package costs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// standIn is the simulator of Hetzner Cloud, called through its API. Its meter is independent of errand.
type standIn struct {
	setting Setting
	clock   *simhetzner.Clock
	sim     *simhetzner.Sim
	servers map[string]int64
}

var _ cloud = (*standIn)(nil)

func newStandIn(s Setting, begin time.Time) (*standIn, error) {
	if s.ImageGB <= 0 || s.Period <= 0 {
		return nil, fmt.Errorf("an image of %d GB and a period of %s: both have to be above zero", s.ImageGB, s.Period)
	}
	clock := simhetzner.NewClock(begin)
	const atOnce = -1 // the simulation has its own durations
	sim := simhetzner.New(simhetzner.Config{
		Now: clock.Now, Period: s.Period, RateLimit: -1, ImageGB: float32(s.ImageGB),
		Took: simhetzner.Took{
			Create: atOnce, FromDisk: atOnce, FromFar: atOnce, Start: atOnce, Stop: atOnce, Shutdown: atOnce,
			Rebuild: atOnce, Image: atOnce, Delete: atOnce, Other: atOnce,
		},
	})
	return &standIn{setting: s, clock: clock, sim: sim, servers: map[string]int64{}}, nil
}

// Sleep advances the clock.
func (s *standIn) Sleep(until time.Time) { s.clock.Set(until) }

// Create orders a server from an image or the default one.
func (s *standIn) Create(name, image string) error {
	var from any = "debian-13"
	if image != "" {
		id, err := strconv.ParseInt(image, 10, 64)
		if err != nil {
			return fmt.Errorf("image %q: %w", image, err)
		}
		from = id
	}
	var got struct {
		Server struct {
			ID int64 `json:"id"`
		} `json:"server"`
	}
	err := s.call(http.MethodPost, "/servers", map[string]any{"name": name, "server_type": s.setting.Type, "location": s.setting.Location, "image": from}, &got)
	s.servers[name] = got.Server.ID
	return err
}

// Delete deletes a server.
func (s *standIn) Delete(name string) error {
	return s.call(http.MethodDelete, fmt.Sprintf("/servers/%d", s.servers[name]), nil, nil)
}

// Image creates an image of a server, which is available immediately.
func (s *standIn) Image(name string) (string, error) {
	var got struct {
		Image struct {
			ID int64 `json:"id"`
		} `json:"image"`
	}
	path := fmt.Sprintf("/servers/%d/actions/create_image", s.servers[name])
	err := s.call(http.MethodPost, path, map[string]any{"type": "snapshot", "description": name}, &got)
	return strconv.FormatInt(got.Image.ID, 10), err
}

// DeleteImage deletes an image.
func (s *standIn) DeleteImage(image string) error {
	return s.call(http.MethodDelete, "/images/"+image, nil, nil)
}

// Bill reads the simulator's bill. Everything ordered must have been deleted.
func (s *standIn) Bill() (Bill, error) {
	bill := s.sim.Bill()
	b := Bill{Currency: bill.Currency}
	for _, l := range bill.Lines {
		if l.To.IsZero() {
			return Bill{}, fmt.Errorf("%s %s is left over", l.Kind, l.Name)
		}
		switch l.Kind {
		case "image":
			b.MicroImages += l.MicroNet
		case "server":
			b.Hours += l.Periods
			b.MicroVMs += l.MicroNet
		default: // addresses
			b.MicroVMs += l.MicroNet
		}
	}
	return b, nil
}

// call calls the API without a network.
func (s *standIn) call(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, "http://standin.invalid/v1"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer any")
	req.Header.Set("Content-Type", "application/json")
	w := &answer{header: http.Header{}, status: http.StatusOK}
	s.sim.ServeHTTP(w, req)
	if w.status >= 300 {
		return fmt.Errorf("%s %s: %d: %s", method, path, w.status, w.body.Bytes())
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(w.body.Bytes(), out)
}

// answer records the response of a handler.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
