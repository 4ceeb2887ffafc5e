package vm

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/errand-bot/errand/state/kv"
)

// Image is an image at the provider, which is paid for by its size and time.
type Image struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	// MicroHour is what a span of Paid costs, in millionths of Currency; 0 while it is not known.
	MicroHour int64         `json:"micro_hour,omitempty"`
	Currency  string        `json:"currency,omitempty"`
	Paid      time.Duration `json:"paid,omitempty"`
}

// openImages are the images whose bill is open.
type openImages struct {
	Open []Image `json:"open,omitempty"`
	// Ended is when a bill was closed, by image. If that one is listed again, its bill goes on from there.
	Ended map[string]time.Time `json:"ended,omitempty"`
}

// imagesRemembered is how long the end of an image's bill is remembered.
const imagesRemembered = 30 * 24 * time.Hour

// billIn is what the image costs in [from, to), until a time. It counts neither as a VM nor as a VM's time.
func (i Image) billIn(from, to, until time.Time) Bill {
	row := Row{Intended: i.CreatedAt, CreatedAt: i.CreatedAt, MicroHour: i.MicroHour, Paid: i.Paid}
	micro := row.billIn(from, to, until).Micro
	if micro == 0 {
		return Bill{}
	}
	return Bill{Micro: micro, Images: micro, Currency: i.Currency}
}

// BookImages brings the bill of images up to date. With whole the list is all that there is: the bill of an image
// that is missing is closed. Otherwise the images are added to those that are known.
func (s *Rows) BookImages(ctx context.Context, images []Image, whole bool) error {
	now := s.now()
	err := kv.Update(ctx, s.db, "book VM images", func(tx kv.Tx) error {
		book, err := s.getImages(tx)
		if err != nil {
			return err
		}
		ended, changed := book.take(images, whole, now)
		for _, i := range ended {
			if err := s.bookMonths(tx, i, i.CreatedAt, now); err != nil {
				return err
			}
		}
		if !changed {
			return nil
		}
		return s.codec.PutJSON(tx, keyVMImages, book)
	})
	if err != nil {
		return fmt.Errorf("book VM images: %w", err)
	}
	return nil
}

// take adopts a list of images. It returns those whose bill ends now, and whether anything has changed.
func (b *openImages) take(images []Image, whole bool, now time.Time) (ended []Image, changed bool) {
	listed := map[string]Image{}
	for _, i := range images {
		listed[i.ID] = i
	}
	if b.Ended == nil {
		b.Ended = map[string]time.Time{}
	}
	var open []Image
	for _, old := range b.Open {
		i, there := listed[old.ID]
		delete(listed, old.ID)
		switch {
		case !there && whole:
			b.Ended[old.ID], changed = now, true
			ended = append(ended, old)
			continue
		case !there, i.MicroHour == 0, i.MicroHour == old.MicroHour:
			currency := i.Currency
			if i = old; i.Currency == "" && currency != "" { // the offers could not be read when it was booked first
				i.Currency, changed = currency, true
			}
		case old.MicroHour == 0: // its size or price has become known
			i.CreatedAt, changed = old.CreatedAt, true
		default: // another price from now on
			ended, changed = append(ended, old), true
			i.CreatedAt = now
		}
		open = append(open, i)
	}
	for _, i := range images {
		if _, isNew := listed[i.ID]; !isNew {
			continue
		}
		delete(listed, i.ID)
		if i.CreatedAt.IsZero() {
			i.CreatedAt = now
		}
		if at := b.Ended[i.ID]; at.After(i.CreatedAt) {
			i.CreatedAt = at
		}
		i.CreatedAt = i.CreatedAt.UTC().Round(0)
		open, changed = append(open, i), true
	}
	b.Open = open
	if changed {
		maps.DeleteFunc(b.Ended, func(_ string, at time.Time) bool { return now.Sub(at) > imagesRemembered })
	}
	return ended, changed
}

func (s *Rows) getImages(r kv.Reader) (b openImages, err error) {
	err = ignoreMissing(s.codec.GetJSON(r, keyVMImages, &b))
	return b, err
}
