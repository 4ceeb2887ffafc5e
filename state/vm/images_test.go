package vm

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stored is an image that costs a cent per hour.
func (s *testRows) stored(id string) Image {
	return Image{ID: id, CreatedAt: s.time(), MicroHour: euros / 10, Currency: "EUR", Paid: time.Hour}
}

func (s *testRows) bookImages(t *testing.T, whole bool, images ...Image) {
	t.Helper()
	if err := s.BookImages(context.Background(), images, whole); err != nil {
		t.Fatal(err)
	}
}

// imagesCost checks the cost of images today and this month, and that no VMs or hours are counted for them.
func (s *testRows) imagesCost(t *testing.T, what string, day, month int64) {
	t.Helper()
	gotDay, gotMonth, err := s.Spent(context.Background(), s.time())
	if err != nil {
		t.Fatal(err)
	}
	bill := func(micro int64) Bill {
		if micro == 0 {
			return Bill{}
		}
		return Bill{Micro: micro, Images: micro, Currency: "EUR"}
	}
	if diff := cmp.Diff([]Bill{bill(day), bill(month)}, []Bill{gotDay, gotMonth}); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Images are billed by started hours, on the day and in the month in which each hour begins.
func TestImagesCost(t *testing.T) {
	t.Parallel()
	const hour = euros / 10
	s := newTestRows(t)
	noon := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	s.advance(noon.Sub(s.time()))
	a, b := s.stored("a"), s.stored("b")
	s.bookImages(t, true, a)
	s.imagesCost(t, "the first hour", hour, hour)
	s.advance(2*time.Hour + time.Second)
	s.imagesCost(t, "three hours", 3*hour, 3*hour)
	b.CreatedAt = s.time()
	s.bookImages(t, false, b) // a is not missing
	s.reopen(t)
	s.imagesCost(t, "the first hour of another", 4*hour, 4*hour)
	s.bookImages(t, true, a)
	s.advance(time.Hour)
	s.imagesCost(t, "what is gone has cost", 5*hour, 5*hour)
	s.advance(11 * time.Hour) // two hours into April
	s.imagesCost(t, "another month", 3*hour, 3*hour)
	s.bookImages(t, true)
	s.imagesCost(t, "none is left", 3*hour, 3*hour)
	day, month, err := s.Spent(context.Background(), noon)
	if err != nil || day.Micro != 13*hour || month.Micro != 13*hour {
		t.Errorf("got cost in March %+v, %+v, error %v", day, month, err)
	}
	s.bookImages(t, true)
	s.imagesCost(t, "it is not booked twice", 3*hour, 3*hour)
}

// An image that is missing from one list and comes back is billed once, and a new price applies from when it is known.
func TestImagesAreBookedOnce(t *testing.T) {
	t.Parallel()
	const hour = euros / 10
	s := newTestRows(t)
	a := s.stored("a")
	s.bookImages(t, true, a, a)
	for i := range 3 { // it flickers, at full hours
		s.advance(time.Hour)
		s.bookImages(t, true)
		s.bookImages(t, true, a)
		s.imagesCost(t, fmt.Sprintf("seen again after %d hours", i+1), int64(i+2)*hour, int64(i+2)*hour)
	}
	s.bookImages(t, true)
	unknown := s.stored("u")
	unknown.MicroHour = 0
	s.bookImages(t, true, unknown)
	s.advance(5 * time.Hour)
	s.imagesCost(t, "its size is not known", 4*hour, 4*hour)
	known := unknown
	known.MicroHour, known.CreatedAt = hour, s.time() // although the provider reports other values now
	s.bookImages(t, true, known)
	s.imagesCost(t, "from its beginning", 9*hour, 9*hour)
	s.bookImages(t, true, unknown)
	s.imagesCost(t, "the price cannot be read", 9*hour, 9*hour)
	known.MicroHour = 2 * hour
	s.bookImages(t, true, known)
	s.advance(time.Hour)
	s.imagesCost(t, "a higher price", 9*hour+2*hour, 9*hour+2*hour)
}

// Another VM, or another hour of one, is refused when images have used up a cap.
func TestImagesCountTowardsCaps(t *testing.T) {
	t.Parallel()
	for limit, caps := range map[string]Caps{
		LimitVMsDay: {MicroDay: 2 * euros}, LimitVMsMonth: {MicroMonth: 2 * euros},
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			s := newTestRows(t)
			s.advance(time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC).Sub(s.time()))
			s.bring(t, "a", firstTask, caps)
			if err := s.SpanAllowed(context.Background(), s.vmRow(t, "a"), caps); err != nil {
				t.Fatal(err)
			}
			s.bookImages(t, true, s.stored("image"))
			var refused *LimitError
			if err := s.SpanAllowed(context.Background(), s.vmRow(t, "a"), caps); !errors.As(err, &refused) || refused.Limit != limit {
				t.Errorf("another hour: got error %v", err)
			}
			s.refuses(t, cloudIntent("b", firstTask), caps, limit)
			s.bookImages(t, true) // deleted images were paid for
			s.refuses(t, cloudIntent("b", firstTask), caps, limit)
		})
	}
}

func (s *testRows) vmRow(t *testing.T, name string) Row {
	t.Helper()
	row, err := s.Get(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// An image that was recorded while the prices could not be read gets its currency from the next list that has it.
func TestCurrencyOfAnImageIsFilledIn(t *testing.T) {
	t.Parallel()
	for name, price := range map[string]int64{"the price was known": euros / 10, "the price was not known": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestRows(t)
			full := s.stored("a")
			bare := full
			bare.Currency, bare.MicroHour = "", price
			s.bookImages(t, true, bare)
			s.bookImages(t, true, full)
			s.bookImages(t, true, bare) // a later failure takes nothing back
			s.reopen(t)
			s.imagesCost(t, "the first hour", full.MicroHour, full.MicroHour)
		})
	}
}
