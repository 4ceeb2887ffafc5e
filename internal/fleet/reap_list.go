package fleet

import (
	"context"
	"errors"
	"maps"
	"strings"
)

// unlistedID is the ID of the alarm that a list could not be read.
const unlistedID = "list"

// unlistedOther stands for the kinds of strays when it is not known which of their lists failed.
const unlistedOther = "other"

// list reads the provider's lists into a survey. One that fails leaves its kind unlisted and empty.
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
