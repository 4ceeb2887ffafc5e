package fleet

import (
	"context"
	"errors"
	"maps"
	"strings"
)

// unlistedID is the ID of the alarm about an unreadable list.
const unlistedID = "list"

// unlistedOther stands for all kinds of strays if the failed list is unknown.
const unlistedOther = "other"

// list reads the provider's lists into a survey. If a list fails its kind stays empty and is marked as unlisted.
func (f *Fleet) list(ctx context.Context, s *survey) {
	var err error
	if s.vms, err = f.List(ctx); err != nil {
		s.vms, s.unlisted[ReapVM] = nil, err
	}
	if imager, ok := f.provider.(Imager); ok {
		if s.images, err = imager.Images(ctx); err != nil {
			s.images, s.unlisted[ReapImage] = nil, err
		}
	}
	auditor, ok := f.provider.(Auditor)
	if !ok {
		return
	}
	s.strays, err = auditor.Strays(ctx)
	var unlisted *UnlistedError
	switch {
	case err == nil:
	case errors.As(err, &unlisted):
		maps.Copy(s.unlisted, unlisted.Kinds)
	default:
		s.strays, s.unlisted[unlistedOther] = nil, err
	}
}

// kindOf returns the kind in the key of a sighting.
func kindOf(key string) string {
	kind, _, _ := strings.Cut(key, " ")
	return kind
}
