package vm

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/errand-bot/errand/state/kv"
)

// Image is an image at the provider, which is billed by its size and time.
type Image struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	// MicroHour is the price of a span of Paid, in millionths of Currency; 0 while it is unknown.
	MicroHour int64         `json:"micro_hour,omitempty"`
	Currency  string        `json:"currency,omitempty"`
	Paid      time.Duration `json:"paid,omitempty"`
}

// openImages has the images whose bill is open.
type openImages struct {
	Open []Image `json:"open,omitempty"`
	// Ended has the times at which bills were closed, by image. If such an image is listed again, its bill continues
	// from there.
	Ended map[string]time.Time `json:"ended,omitempty"`
}

// imagesRemembered is the time for which the end of an image's bill is stored.
const imagesRemembered = 30 * 24 * time.Hour

// billIn returns the cost of the image in [from, to), until a time. It counts neither as a VM nor as VM time.
func (i Image) billIn(from, to, until time.Time) Bill {
	row := Row{Intended: i.CreatedAt, CreatedAt: i.CreatedAt, MicroHour: i.MicroHour, Paid: i.Paid}
	micro := row.billIn(from, to, until).Micro
	if micro == 0 {
		return Bill{}
	}
	return Bill{Micro: micro, Images: micro, Currency: i.Currency}
}

// BookImages updates the bill of images. If whole is set the list is complete, and the bill of each missing image is
// closed. Otherwise the images are added to the known ones.
func (s *Rows) BookImages(ctx context.Context, images []Image, isComplete bool) error {
	now := s.now()
	err := kv.Update(ctx, s.db, "book VM images", func(tx kv.Tx) error {
		book, err := s.getImages(tx)
		if err != nil {
			return err
		}
		ended, changed := book.update(images, isComplete, now)
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

// update applies a list of images. It returns the images whose bill ends now, and whether anything has changed.
func (b *openImages) update(images []Image, isComplete bool, now time.Time) (ended []Image, changed bool) {
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
		case !there && isComplete:
			b.Ended[old.ID], changed = now, true
			ended = append(ended, old)
			continue
		case !there, i.MicroHour == 0, i.MicroHour == old.MicroHour:
			currency := i.Currency
			if i = old; i.Currency == "" && currency != "" { // the prices could not be read when it was first recorded
				i.Currency, changed = currency, true
			}
		case old.MicroHour == 0: // its size or price is now known
			i.CreatedAt, changed = old.CreatedAt, true
		default: // its price has changed
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
