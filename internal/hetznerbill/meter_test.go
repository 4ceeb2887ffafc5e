package hetznerbill

import (
	"testing"
	"time"
)

func TestNet(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	server := Price{Hour: 25_600, Month: 15_990_000}
	for name, test := range map[string]struct {
		meter          Meter
		after          time.Duration
		periods, micro int64
	}{
		"a started hour":       {Meter{Price: server}, time.Second, 1, 25_600},
		"nothing yet":          {Meter{Price: server}, 0, 1, 25_600},
		"an hour sharp":        {Meter{Price: server}, time.Hour, 1, 25_600},
		"the second hour":      {Meter{Price: server}, time.Hour + time.Second, 2, 51_200},
		"deleted long ago":     {Meter{Price: server, To: from.Add(30 * time.Minute)}, 100 * time.Hour, 1, 25_600},
		"a whole month":        {Meter{Price: server}, 29 * 24 * time.Hour, 696, 15_990_000},
		"into the next month":  {Meter{Price: server}, 30 * 24 * time.Hour, 720, 15_990_000 + 12*25_600},
		"an image":             {Meter{Price: Price{Month: ImageMonth}, GB: 10}, 73 * time.Hour, 73, 14_300},
		"a part of a gigabyte": {Meter{Price: Price{Month: ImageMonth}, GB: 0.5}, time.Hour, 1, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.meter.From = from
			if periods, micro := test.meter.Net(from.Add(test.after), time.Hour); periods != test.periods || micro != test.micro {
				t.Errorf("%d periods cost %d, want %d and %d", periods, micro, test.periods, test.micro)
			}
		})
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	m := &Meter{From: at}
	m.Stop(at.Add(time.Hour))
	m.Stop(at.Add(2 * time.Hour))
	if !m.To.Equal(at.Add(time.Hour)) {
		t.Errorf("the second end counts: %s", m.To)
	}
	(*Meter)(nil).Stop(at)
}
