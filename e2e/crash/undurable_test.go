package crash

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestUndurable tests the check of TestHeavyDurable with short traces.
func TestUndurable(t *testing.T) {
	t.Parallel()
	const (
		ask    = `10  read(7<socket:[1]>, "POST /api/github/hook HTTP/1.1\r\nX-Github-Delivery: g-1\r\n\r\n{", 4096) = 60` + "\n"
		rest   = `10  read(7<socket:[1]>, "}", 4096) = 1` + "\n"
		page   = `11  pwrite64(5</d/errand.db>, "\0d/g-1\0", 4096, 12288) = 4096` + "\n"
		sync   = `11  fdatasync(5</d/errand.db>) = 0` + "\n"
		meta   = `11  pwrite64(5</d/errand.db>, "\355\332", 4096, 0) = 4096` + "\n"
		answer = `10  write(7<socket:[1]>, "HTTP/1.1 200 OK\r\n\r\n", 19) = 19` + "\n"
		begins = `11  fdatasync(5</d/errand.db> <unfinished ...>` + "\n"
		ends   = `11  <... fdatasync resumed>)          = 0` + "\n"
		other  = `11  fdatasync(6</d/other.db>) = 0` + "\n"
		second = `12  read(8<socket:[2]>, "POST / HTTP/1.1\r\nX-Github-Delivery: g-1\r\n\r\n{}", 4096) = 60` + "\n"
		again  = `12  write(8<socket:[2]>, "HTTP/1.1 200 OK\r\n\r\n", 19) = 19` + "\n"
	)
	for name, test := range map[string]struct {
		trace   string
		answers int
		wrong   []string
	}{
		"durable":                     {ask + rest + page + sync + meta + sync + answer, 1, nil},
		"the last sync in two halves": {ask + rest + page + sync + meta + begins + ends + answer, 1, nil},
		"a redelivery":                {ask + rest + page + sync + meta + sync + answer + second + again, 2, nil},
		"two at once, one stores":     {ask + rest + page + second + sync + meta + sync + again + answer, 2, nil},
		"answered during the sync":    {ask + rest + page + sync + meta + begins + answer + ends, 1, []string{"g-1: the meta page was not synced before the answer"}},
		"one sync":                    {ask + rest + page + meta + sync + answer, 1, []string{"g-1: no meta page was written before the answer"}},
		"another file":                {ask + rest + page + other + meta + other + answer, 1, []string{"g-1: its page was not synced before the answer"}},
		"stored before it was read":   {ask + page + sync + meta + sync + rest + answer, 1, []string{"g-1: its page was not written before the answer"}},
		"not stored":                  {ask + rest + sync + meta + sync + answer, 1, []string{"g-1: its page was not written before the answer"}},
		"another answer":              {strings.Replace(answer, "7", "9", 1), 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, err := readTrace(strings.NewReader(test.trace))
			if err != nil {
				t.Fatal(err)
			}
			answers, wrong := tr.prematureAnswers("/d/errand.db")
			if diff := gocmp.Diff(test.wrong, wrong); diff != "" || answers != test.answers {
				t.Errorf("%d answers, wrong (-want +got):\n%s", answers, diff)
			}
		})
	}
}
