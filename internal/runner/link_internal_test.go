package runner

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestCommandThatEndsLiveAtOnceHasStarted: a command may kill Live before that could report the start.
func TestCommandThatEndsLiveAtOnceHasStarted(t *testing.T) {
	t.Parallel()
	said := liveError("no such file")
	for name, test := range map[string]struct {
		answers string
		want    error
	}{
		"started":                       {`{"ok":true}{"ok":true}`, nil},
		"killed before it could say so": {`{"ok":true}`, nil},
		"killed while it writes":        {`{"ok":true}{"ok"`, nil},
		"not started":                   {`{"ok":true}{"error":"no such file"}`, said},
		"never there":                   {``, io.EOF},
		"refused its order":             {`{"error":"no such file"}`, said},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &link{answers: json.NewDecoder(strings.NewReader(test.answers))}
			if err := l.awaitStart(); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}
