package simhetzner

import (
	"context"
	"net/http"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

// Statuses of images.
const (
	imageCreating    = "creating"
	imageAvailable   = "available"
	imageUnavailable = "unavailable"
)

type image struct {
	id          int64
	kind        string // system, snapshot
	status      string
	name        string // name of a stock image
	description string
	flavor      string
	version     string
	arch        string
	sizeGB      float32 // 0 while it is being created
	diskGB      int
	created     time.Time
	fromID      int64
	fromName    string
	boundTo     *server
	protected   bool
	labels      map[string]string
	location    *location // location of its data; nil: everywhere
	disk        string
	meter       *meter // nil until it is available
	// inconsistent states that the server was not off, or that its disk lacked data that its computer had written.
	inconsistent bool
}

func (i *image) about() (int64, string, time.Time, map[string]string) {
	return i.id, i.name, i.created, i.labels
}

// wireImage omits additional fields of the client's type.
type wireImage struct {
	schema.Image
	Deprecation *schema.DeprecationInfo `json:"deprecation,omitempty"`
}

func (i *image) wire() wireImage {
	at := i.created.UTC().Truncate(time.Second)
	w := schema.Image{
		ID:           i.id,
		Status:       i.status,
		Type:         i.kind,
		Description:  i.description,
		DiskSize:     float32(i.diskGB),
		Created:      &at,
		OSFlavor:     i.flavor,
		Architecture: i.arch,
		RapidDeploy:  i.kind == "system",
		Protection:   schema.ImageProtection{Delete: i.protected},
		Labels:       i.labels,
	}
	if i.name != "" {
		w.Name = &i.name
	}
	if i.version != "" {
		w.OSVersion = &i.version
	}
	if i.sizeGB > 0 {
		w.ImageSize = &i.sizeGB
	}
	if i.fromID != 0 {
		w.CreatedFrom = &schema.ImageCreatedFrom{ID: i.fromID, Name: i.fromName}
	}
	if i.boundTo != nil {
		w.BoundTo = &i.boundTo.id
	}
	return wireImage{Image: w}
}

func imageRef(i *image) []schema.ActionResourceReference {
	return []schema.ActionResourceReference{{ID: i.id, Type: "image"}}
}

// imageSet holds images by ID.
type imageSet map[int64]*image

// find finds an image by ID, or a stock image of an architecture by name.
func (all imageSet) find(want schema.IDOrName, arch string) *image {
	if want.ID != 0 {
		return all[want.ID]
	}
	for _, i := range all {
		if want.Name != "" && i.name == want.Name && i.arch == arch {
			return i
		}
	}
	return nil
}

func listImages(s *Sim, c *call) (answer, error) {
	return list(c, "images", s.images, func(i *image) bool {
		status := c.query["status"]
		return anyOf(c, "type", i.kind) && anyOf(c, "architecture", i.arch) && (len(status) == 0 || anyOf(c, "status", i.status))
	}, func(i *image) any { return i.wire() })
}

func getImage(s *Sim, c *call) (answer, error) {
	i, err := pathObject(c, "image", s.images)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"image": i.wire()}}, nil
}

func updateImage(s *Sim, c *call) (answer, error) {
	i, err := pathObject(c, "image", s.images)
	if err != nil {
		return answer{}, err
	}
	req, err := decode[schema.ImageUpdateRequest](c)
	if err != nil {
		return answer{}, err
	}
	if i.kind == "system" {
		return answer{}, newError("forbidden", "system images cannot be changed")
	}
	if req.Labels != nil {
		if i.labels, err = checkLabels(req.Labels); err != nil {
			return answer{}, err
		}
	}
	if req.Description != nil {
		i.description = *req.Description
	}
	return answer{http.StatusOK, map[string]any{"image": i.wire()}}, nil
}

func deleteImage(s *Sim, c *call) (answer, error) {
	i, err := pathObject(c, "image", s.images)
	switch {
	case err != nil:
		return answer{}, err
	case i.kind == "system":
		return answer{}, newError("forbidden", "system images cannot be deleted")
	case i.protected:
		return answer{}, newError("protected", "image deletion is protected")
	case i.status == imageCreating:
		return answer{}, newError(codeLocked, "image is being created")
	}
	delete(s.images, i.id)
	i.meter.stop(c.now)
	for _, sv := range s.servers {
		if sv.image == i {
			sv.image = nil
		}
	}
	if i.disk != "" {
		s.startWork(func(ctx context.Context) error { return s.cfg.Machines.DeleteDisk(ctx, i.disk) })
	}
	return answer{status: http.StatusNoContent}, nil
}

// actCreateImage creates a snapshot of a server in any state, as the API does; its action locks the server.
// Object.Inconsistent marks images that may be unreadable.
func actCreateImage(s *Sim, c *call, sv *server) (map[string]any, error) {
	req, err := decode[schema.ServerActionCreateImageRequest](c)
	if err != nil {
		return nil, err
	}
	labels, err := checkLabels(req.Labels)
	if err != nil {
		return nil, err
	}
	if req.Type != nil && *req.Type != "snapshot" {
		return nil, newFieldError("type", "only snapshots can be made here")
	}
	snapshots := 0
	for _, i := range s.images {
		if i.kind == "snapshot" {
			snapshots++
		}
	}
	if q := s.cfg.Quota.Snapshots; q > 0 && snapshots >= q {
		return nil, newError("resource_limit_exceeded", "snapshot limit exceeded")
	}
	img := &image{
		id: s.nextID(), kind: "snapshot", status: imageCreating, flavor: "unknown", arch: sv.typ.Architecture, diskGB: sv.diskGB,
		created: c.now, fromID: sv.id, fromName: sv.name, labels: labels, location: sv.location, description: "snapshot",
		inconsistent: sv.status != serverOff || !sv.synced,
	}
	if sv.image != nil {
		img.flavor, img.version = sv.image.flavor, sv.image.version
	}
	if req.Description != nil && *req.Description != "" {
		img.description = *req.Description
	}
	s.images[img.id] = img
	body := s.actionBody(s.snapshotServer(c, sv, img))
	body["image"] = img.wire()
	return body, nil
}

// snapshotServer starts the action that fills an image.
func (s *Sim) snapshotServer(c *call, sv *server, img *image) *action {
	size := s.cfg.ImageGB
	var w *work
	if m := sv.machine; m != nil {
		w = s.startWork(func(ctx context.Context) error {
			disk, err := m.Snapshot(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			if img.disk = disk.Handle; disk.SizeGB > 0 {
				size = disk.SizeGB
			}
			return err
		})
	}
	bad := c.fault != nil && c.fault.Unreadable
	done := func(at time.Time, failed bool) {
		if img.status = imageAvailable; failed || bad {
			img.status = imageUnavailable
			return
		}
		img.sizeGB = size
		img.meter = s.meters.start(meter{
			kind:   "image",
			id:     img.id,
			name:   img.description,
			labels: img.labels,
			Meter:  hetznerbill.Meter{Price: hetznerbill.Price{Month: hetznerbill.ImageMonth}, GB: size, From: at},
		})
	}
	return s.startAction(c, plan{command: "create_image", took: s.cfg.Took.Image, work: w, server: sv, on: imageRef(img), done: done})
}
