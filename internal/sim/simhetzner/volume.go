package simhetzner

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

type volume struct {
	id        int64
	name      string
	sizeGB    int
	format    *string
	location  *location
	server    *server
	labels    map[string]string
	created   time.Time
	creating  bool
	protected bool
	meter     *meter
}

func (v *volume) about() (int64, string, time.Time, map[string]string) {
	return v.id, v.name, v.created, v.labels
}

func volumeRef(v *volume) []schema.ActionResourceReference {
	return []schema.ActionResourceReference{{ID: v.id, Type: "volume"}}
}

func (v *volume) wire() any {
	w := schema.Volume{
		ID: v.id, Name: v.name, Status: "available", Location: v.location.Location, Size: v.sizeGB, Format: v.format,
		Protection: schema.VolumeProtection{Delete: v.protected}, Labels: v.labels, Created: v.created.UTC().Truncate(time.Second),
		LinuxDevice: fmt.Sprintf("/dev/disk/by-id/scsi-0HC_Volume_%d", v.id),
	}
	if v.creating {
		w.Status = "creating"
	}
	if v.server != nil {
		w.Server = &v.server.id
	}
	return w
}

func listVolumes(s *Sim, c *call) (answer, error) {
	return list(c, "volumes", s.volumes, nil, (*volume).wire)
}

func getVolume(s *Sim, c *call) (answer, error) {
	v, err := pathObject(c, "volume", s.volumes)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"volume": v.wire()}}, nil
}

// newVolume checks a request and returns its volume, which is not stored yet.
func (s *Sim) newVolume(c *call) (*volume, error) {
	req, err := decode[schema.VolumeCreateRequest](c)
	if err != nil {
		return nil, err
	}
	labels, err := checkLabels(req.Labels)
	if err != nil {
		return nil, err
	}
	v := &volume{name: req.Name, sizeGB: req.Size, format: req.Format, labels: labels, created: c.now, creating: true}
	if req.Server != nil {
		if v.server = s.servers[*req.Server]; v.server == nil {
			return nil, notFound("server", *req.Server)
		}
		v.location = v.server.location
	} else if req.Location != nil {
		v.location = s.catalog.location(cmp.Or(req.Location.Name, strconv.FormatInt(req.Location.ID, 10)))
	}
	switch {
	case req.Name == "":
		return nil, newFieldError("name", "is needed")
	case req.Size < 10 || req.Size > 10240:
		return nil, newFieldError("size", "has to be 10 to 10240 GB")
	case v.location == nil:
		return nil, newFieldError("location", "there is none like it")
	case s.cfg.Quota.Volumes > 0 && len(s.volumes) >= s.cfg.Quota.Volumes:
		return nil, newError("resource_limit_exceeded", "volume limit exceeded")
	}
	return v, checkNameFree(s.volumes, "volume", req.Name, 0)
}

func createVolume(s *Sim, c *call) (answer, error) {
	v, err := s.newVolume(c)
	if err != nil {
		return answer{}, err
	}
	v.id = s.nextID()
	s.volumes[v.id] = v
	v.meter = s.meters.start(meter{
		kind:     "volume",
		id:       v.id,
		name:     v.name,
		labels:   v.labels,
		location: v.location.Name,
		Meter:    hetznerbill.Meter{Price: hetznerbill.Price{Month: hetznerbill.VolumeMonth}, GB: float32(v.sizeGB), From: c.now},
	})
	a := s.startAction(c, plan{command: "create_volume", took: s.cfg.Took.Other, on: volumeRef(v), done: func(time.Time, bool) { v.creating = false }})
	next := []*action{}
	if v.server != nil {
		v.server.volumes = append(v.server.volumes, v)
		next = append(next, s.startAction(c, plan{command: "attach_volume", took: s.cfg.Took.Other, on: volumeRef(v), after: a}))
	}
	return answer{http.StatusCreated, map[string]any{"volume": v.wire(), "action": s.wireAction(a), "next_actions": s.wireActions(next...)}}, nil
}

func updateVolume(s *Sim, c *call) (answer, error) {
	v, err := pathObject(c, "volume", s.volumes)
	if err != nil {
		return answer{}, err
	}
	req, err := decode[schema.VolumeUpdateRequest](c)
	if err != nil {
		return answer{}, err
	}
	if req.Name != "" {
		if err := checkNameFree(s.volumes, "volume", req.Name, v.id); err != nil {
			return answer{}, err
		}
		v.name = req.Name
	}
	if req.Labels != nil {
		if v.labels, err = checkLabels(req.Labels); err != nil {
			return answer{}, err
		}
	}
	return answer{http.StatusOK, map[string]any{"volume": v.wire()}}, nil
}

func deleteVolume(s *Sim, c *call) (answer, error) {
	v, err := pathObject(c, "volume", s.volumes)
	switch {
	case err != nil:
		return answer{}, err
	case v.protected:
		return answer{}, newError("protected", "volume deletion is protected")
	case v.server != nil:
		return answer{}, newError("resource_in_use", "volume is attached")
	}
	delete(s.volumes, v.id)
	v.meter.stop(c.now)
	return answer{status: http.StatusNoContent}, nil
}

// actVolume serves POST /volumes/{id}/actions/{act}.
func actVolume(s *Sim, c *call) (answer, error) {
	v, err := pathObject(c, "volume", s.volumes)
	if err != nil {
		return answer{}, err
	}
	var command string
	switch c.act {
	case "attach":
		command, err = "attach_volume", s.attachVolume(c, v)
	case "detach":
		if command = "detach_volume"; v.server != nil {
			v.server.volumes = slices.DeleteFunc(v.server.volumes, func(o *volume) bool { return o == v })
			v.server = nil
		}
	case "resize":
		command, err = "resize_volume", s.resizeVolume(c, v)
	default:
		err = newError("not_found", "there is no action %s here", c.act)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusCreated, s.actionBody(s.startAction(c, plan{command: command, took: s.cfg.Took.Other, on: volumeRef(v)}))}, nil
}

func (s *Sim) attachVolume(c *call, v *volume) error {
	req, err := decode[schema.VolumeActionAttachVolumeRequest](c)
	if err != nil {
		return err
	}
	sv := s.servers[req.Server]
	switch {
	case sv == nil:
		return notFound("server", req.Server)
	case v.server != nil:
		return newError("volume_already_attached", "volume is attached")
	case sv.location != v.location:
		return newFieldError("server", "is in another location")
	}
	v.server = sv
	sv.volumes = append(sv.volumes, v)
	return nil
}

func (s *Sim) resizeVolume(c *call, v *volume) error {
	req, err := decode[schema.VolumeActionResizeVolumeRequest](c)
	if err != nil {
		return err
	}
	if req.Size <= v.sizeGB {
		return newFieldError("size", "a volume only grows")
	}
	v.sizeGB = req.Size
	v.meter.stop(c.now)
	v.meter = s.meters.start(meter{
		kind:     "volume",
		id:       v.id,
		name:     v.name,
		labels:   v.labels,
		location: v.location.Name,
		Meter:    hetznerbill.Meter{Price: hetznerbill.Price{Month: hetznerbill.VolumeMonth}, GB: float32(v.sizeGB), From: c.now},
	})
	return nil
}
