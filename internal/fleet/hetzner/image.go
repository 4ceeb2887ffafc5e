package hetzner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// images creates, lists and deletes this deployment's snapshots.
type images struct {
	*api
	power *power

	mu   sync.Mutex
	seen map[int64]time.Time // when the API returned an image as this deployment's
}

// labelLocation is the location where an image was created: the API does not report it, and creating a VM elsewhere
// takes long.
const labelLocation = "errand-location"

// statusUnavailable is the status of an unusable image; hcloud-go has no constant for it.
const statusUnavailable = "unavailable"

// Image starts creating a snapshot of the powered-off server with this ID, or adopts the one of that server with
// exactly these labels, even a failed one: to get another, delete it first. With spec.First it does not look for one.
func (p *Provider) Image(ctx context.Context, spec fleet.ImageSpec) (fleet.Image, error) {
	img, err := p.images.create(ctx, spec)
	if err != nil {
		return fleet.Image{}, fmt.Errorf("create an image of server %s: %w", spec.VM, err)
	}
	return img, nil
}

func (g *images) create(ctx context.Context, spec fleet.ImageSpec) (fleet.Image, error) {
	want := g.withDeploymentLabel(spec.Labels)
	if err := checkLabels(want); err != nil {
		return fleet.Image{}, err
	}
	if !spec.First {
		if img, found, err := g.findImage(ctx, spec.VM, want); found || err != nil {
			return img, err
		}
	}
	s, err := g.power.serverOff(ctx, spec.VM)
	if err != nil {
		return fleet.Image{}, err
	}
	if validLabel(s.Location.Name) {
		want[labelLocation] = s.Location.Name
	}
	out, _, err := call[schema.ServerActionCreateImageResponse](ctx, g.api, request{
		method: http.MethodPost, path: formatPath("/servers/%d/actions/create_image", s.ID),
		body: schema.ServerActionCreateImageRequest{Type: hcloud.Ptr("snapshot"), Description: hcloud.Ptr("errand " + s.Name), Labels: &want},
	})
	if err == nil && out.Image.ID == 0 {
		err = fmt.Errorf("%w: the response names no image", fleet.ErrUnknownOutcome)
	}
	if err != nil {
		return fleet.Image{}, err
	}
	g.recordSeen(out.Image)
	g.cfg.Log.Info().Str("vm", s.Name).Int64("image", out.Image.ID).Msg("image ordered")
	return convertImage(out.Image), nil
}

// findImage finds the image of a server with exactly these labels.
func (g *images) findImage(ctx context.Context, server string, labels map[string]string) (img fleet.Image, found bool, err error) {
	list, err := g.list(ctx, labels, false)
	for _, img := range list {
		has := maps.Clone(img.Labels)
		delete(has, labelLocation)
		if maps.Equal(has, labels) && (img.CreatedFrom == nil || strconv.FormatInt(img.CreatedFrom.ID, 10) == server) {
			return convertImage(img), true, nil
		}
	}
	return fleet.Image{}, false, err
}

// ImageByID returns one of this deployment's snapshots.
func (p *Provider) ImageByID(ctx context.Context, id string) (fleet.Image, error) {
	img, err := p.images.byID(ctx, id)
	if errors.Is(err, fleet.ErrInvalid) { // a name, as for stock images
		err = fleet.ErrNotFound
	}
	if err == nil && (img.Type != "snapshot" || img.Deleted != nil || img.Labels[fleet.LabelDeployment] != p.cfg.Deployment) {
		err = fleet.ErrNotFound
	}
	if err != nil {
		return fleet.Image{}, fmt.Errorf("get image %s: %w", id, err)
	}
	p.images.recordSeen(img)
	return convertImage(img), nil
}

func (g *images) byID(ctx context.Context, id string) (schema.Image, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 {
		return schema.Image{}, fmt.Errorf("%w: no image has this number", fleet.ErrInvalid)
	}
	out, _, err := call[schema.ImageGetResponse](ctx, g.api, request{method: http.MethodGet, path: formatPath("/images/%d", number)})
	if err == nil && out.Image.ID != number {
		err = fmt.Errorf("%w: the response is about image %d", errTemporary, out.Image.ID)
	}
	return out.Image, err
}

// Images lists this deployment's snapshots.
func (p *Provider) Images(ctx context.Context) ([]fleet.Image, error) {
	found, err := p.images.list(ctx, p.withDeploymentLabel(nil), false)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	p.images.forgetAll()
	out := make([]fleet.Image, len(found))
	for i, img := range found {
		p.images.recordSeen(img)
		out[i] = convertImage(img)
	}
	return out, nil
}

// list lists snapshots that have all of labels.
func (g *images) list(ctx context.Context, labels map[string]string, low bool) ([]schema.Image, error) {
	query := url.Values{"type": {"snapshot"}}
	if len(labels) > 0 {
		query.Set("label_selector", labelSelector(labels))
	}
	found, err := listAll(ctx, g.api, request{method: http.MethodGet, path: "/images", query: query, low: low},
		func(r schema.ImageListResponse) []schema.Image { return r.Images }, func(i schema.Image) int64 { return i.ID })
	if err != nil {
		return nil, err
	}
	var out []schema.Image
	for _, img := range found {
		if img.Type == "snapshot" && img.Deleted == nil && checkLabelsMatch(img.Labels, labels) == nil {
			out = append(out, img)
		}
	}
	return out, nil
}

// DeleteImage deletes one of this deployment's images. It ignores missing and other deployments' images; the reaper
// finds an image that exists although the API reported otherwise.
func (p *Provider) DeleteImage(ctx context.Context, id string) error {
	if err := p.images.delete(ctx, id); err != nil {
		return fmt.Errorf("delete image %s: %w", id, err)
	}
	return nil
}

func (g *images) delete(ctx context.Context, id string) error {
	if !g.isOurs(id) {
		img, err := g.byID(ctx, id)
		switch {
		case errors.Is(err, fleet.ErrNotFound):
			return nil
		case err != nil:
			return err
		case img.Labels[fleet.LabelDeployment] != g.cfg.Deployment:
			return fmt.Errorf("%w: it is not this deployment's", fleet.ErrInvalid)
		}
	}
	_, _, err := call[nothing](ctx, g.api, request{method: http.MethodDelete, path: "/images/" + id})
	if errors.Is(err, fleet.ErrNotFound) {
		return nil
	}
	return err
}

// convertImage converts a snapshot.
func convertImage(s schema.Image) fleet.Image {
	labels := maps.Clone(s.Labels)
	out := fleet.Image{
		ID: fmt.Sprint(s.ID), Labels: labels, Location: labels[labelLocation], Arch: architectureOf(s.Architecture),
		Ready: s.Status == string(hcloud.ImageStatusAvailable), Failed: s.Status == statusUnavailable,
		DiskGB: int(math.Ceil(float64(s.DiskSize))),
	}
	delete(labels, labelLocation)
	if s.ImageSize != nil {
		out.StoredMB = int64(math.Ceil(float64(*s.ImageSize) * 1000))
	}
	if s.Created != nil {
		out.CreatedAt = s.Created.UTC()
	}
	return out
}

// recordSeen records that the API has just returned an image, if it is this deployment's.
func (g *images) recordSeen(img schema.Image) {
	now := g.cfg.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.seen, func(_ int64, at time.Time) bool { return now.Sub(at) >= serverTTL })
	if img.Labels[fleet.LabelDeployment] == g.cfg.Deployment {
		g.seen[img.ID] = now
	}
}

// forgetAll drops the cached images before a complete list renews them.
func (g *images) forgetAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.seen)
}

// isOurs reports whether the API recently returned an image as this deployment's.
func (g *images) isOurs(id string) bool {
	number, err := strconv.ParseInt(id, 10, 64)
	now := g.cfg.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.seen[number]
	return err == nil && ok && now.Sub(at) < serverTTL
}
