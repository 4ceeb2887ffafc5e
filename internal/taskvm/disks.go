package taskvm

import (
	"context"

	"github.com/errand-bot/errand/internal/fleet"
)

// An Imager stores the disks of VMs as images; *fleet.Fleet is one.
type Imager interface {
	Snapshot(ctx context.Context, vm string) (fleet.Image, error)
	ForgetImage(ctx context.Context, id string) error
}

// Disks suspends VMs by storing their disks as images.
type Disks struct{ Imager Imager }

// Snapshot powers a VM off and returns the image of its disk. It may be repeated after any failure; the VM remains.
func (d Disks) Snapshot(ctx context.Context, vm string) (ref string, bytes int64, err error) {
	img, err := d.Imager.Snapshot(ctx, vm)
	if err != nil {
		return "", 0, err
	}
	return img.ID, img.StoredMB << 20, nil
}

// DeleteSnapshot deletes an image. Deleting a missing one is not an error.
func (d Disks) DeleteSnapshot(ctx context.Context, ref string) error {
	return d.Imager.ForgetImage(ctx, ref)
}
