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

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// labelLocation is the location where an image was created: the API does not report it, and creating a VM elsewhere
// takes long.
const labelLocation = "errand-location"

// statusUnavailable is the status of an unusable image; hcloud-go has no constant for it.
const statusUnavailable = "unavailable"

// Image starts creating a snapshot of the powered-off server with this ID, or adopts the one of that server with
// exactly these labels, even a failed one: to get another, delete it first. With spec.First it does not look for one.
func (p *Provider) Image(ctx context.Context, spec fleet.ImageSpec) (fleet.Image, error) {
	img, err := p.makeImage(ctx, spec)
	if err != nil {
		return fleet.Image{}, fmt.Errorf("create an image of server %s: %w", spec.VM, err)
	}
	return img, nil
}

func (p *Provider) makeImage(ctx context.Context, spec fleet.ImageSpec) (fleet.Image, error) {
	want := p.own(spec.Labels)
	if err := checkLabels(want); err != nil {
		return fleet.Image{}, err
	}
	if !spec.First {
		if img, found, err := p.begunImage(ctx, spec.VM, want); found || err != nil {
			return img, err
		}
	}
	s, err := p.serverOff(ctx, spec.VM)
	if err != nil {
		return fleet.Image{}, err
	}
	if validLabel(s.Location.Name) {
		want[labelLocation] = s.Location.Name
	}
	out, _, err := call[schema.ServerActionCreateImageResponse](ctx, p, request{
		method: http.MethodPost, path: path("/servers/%d/actions/create_image", s.ID),
		body: schema.ServerActionCreateImageRequest{Type: hcloud.Ptr("snapshot"), Description: hcloud.Ptr("errand " + s.Name), Labels: &want},
	})
	if err == nil && out.Image.ID == 0 {
		err = fmt.Errorf("%w: the response names no image", fleet.ErrUnknownOutcome)
	}
	if err != nil {
		return fleet.Image{}, err
	}
	p.rememberImage(out.Image)
	p.cfg.Log.Info().Str("vm", s.Name).Int64("image", out.Image.ID).Msg("image ordered")
	return image(out.Image), nil
}

// begunImage finds the image of a server with exactly these labels.
func (p *Provider) begunImage(ctx context.Context, server string, labels map[string]string) (img fleet.Image, found bool, err error) {
	list, err := p.images(ctx, labels, false)
	for _, img := range list {
		has := maps.Clone(img.Labels)
		delete(has, labelLocation)
		if maps.Equal(has, labels) && (img.CreatedFrom == nil || strconv.FormatInt(img.CreatedFrom.ID, 10) == server) {
			return image(img), true, nil
		}
	}
	return fleet.Image{}, false, err
}

// ImageByID returns one of this deployment's snapshots.
func (p *Provider) ImageByID(ctx context.Context, id string) (fleet.Image, error) {
	img, err := p.imageByID(ctx, id)
	if errors.Is(err, fleet.ErrInvalid) { // a name, as for stock images
		err = fleet.ErrNotFound
	}
	if err == nil && (img.Type != "snapshot" || img.Deleted != nil || img.Labels[fleet.LabelDeployment] != p.cfg.Deployment) {
		err = fleet.ErrNotFound
	}
	if err != nil {
		return fleet.Image{}, fmt.Errorf("get image %s: %w", id, err)
	}
	p.rememberImage(img)
	return image(img), nil
}

func (p *Provider) imageByID(ctx context.Context, id string) (schema.Image, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 {
		return schema.Image{}, fmt.Errorf("%w: no image has this number", fleet.ErrInvalid)
	}
	out, _, err := call[schema.ImageGetResponse](ctx, p, request{method: http.MethodGet, path: path("/images/%d", number)})
	if err == nil && out.Image.ID != number {
		err = fmt.Errorf("%w: the response is about image %d", errPassing, out.Image.ID)
	}
	return out.Image, err
}

// serverOff returns a powered-off server, according to a recent response to PowerOff or a new request.
func (p *Provider) serverOff(ctx context.Context, id string) (schema.Server, error) {
	p.mu.Lock()
	last, at := p.off, p.offAt
	p.mu.Unlock()
	if strconv.FormatInt(last.ID, 10) == id && p.cfg.Now().Sub(at) < 2*p.cfg.Tick {
		return last, nil
	}
	s, err := p.oursByID(ctx, id)
	if err == nil && !isOff(s) {
		err = fmt.Errorf("%w: it is %s, not off", fleet.ErrBusy, s.Status)
	}
	return s, err
}

// Images lists this deployment's snapshots.
func (p *Provider) Images(ctx context.Context) ([]fleet.Image, error) {
	found, err := p.images(ctx, p.own(nil), false)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	p.forgetImages()
	out := make([]fleet.Image, len(found))
	for i, img := range found {
		p.rememberImage(img)
		out[i] = image(img)
	}
	return out, nil
}

// images lists snapshots that have all of labels.
func (p *Provider) images(ctx context.Context, labels map[string]string, low bool) ([]schema.Image, error) {
	query := url.Values{"type": {"snapshot"}}
	if len(labels) > 0 {
		query.Set("label_selector", selector(labels))
	}
	found, err := all(ctx, p, request{method: http.MethodGet, path: "/images", query: query, low: low},
		func(r schema.ImageListResponse) []schema.Image { return r.Images }, func(i schema.Image) int64 { return i.ID })
	if err != nil {
		return nil, err
	}
	var out []schema.Image
	for _, img := range found {
		if img.Type == "snapshot" && img.Deleted == nil && fits(img.Labels, labels) == nil {
			out = append(out, img)
		}
	}
	return out, nil
}

// DeleteImage deletes one of this deployment's images. It ignores missing and other deployments' images; the reaper
// finds an image that exists although the API reported otherwise.
func (p *Provider) DeleteImage(ctx context.Context, id string) error {
	if err := p.deleteImage(ctx, id); err != nil {
		return fmt.Errorf("delete image %s: %w", id, err)
	}
	return nil
}

func (p *Provider) deleteImage(ctx context.Context, id string) error {
	if !p.isOurImage(id) {
		img, err := p.imageByID(ctx, id)
		switch {
		case errors.Is(err, fleet.ErrNotFound):
			return nil
		case err != nil:
			return err
		case img.Labels[fleet.LabelDeployment] != p.cfg.Deployment:
			return fmt.Errorf("%w: it is not this deployment's", fleet.ErrInvalid)
		}
	}
	_, _, err := call[nothing](ctx, p, request{method: http.MethodDelete, path: "/images/" + id})
	if errors.Is(err, fleet.ErrNotFound) {
		return nil
	}
	return err
}

// image converts a snapshot.
func image(s schema.Image) fleet.Image {
	labels := maps.Clone(s.Labels)
	out := fleet.Image{
		ID: fmt.Sprint(s.ID), Labels: labels, Location: labels[labelLocation], Arch: arch(s.Architecture),
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
