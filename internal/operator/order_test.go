package operator

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/selfclient"
)

// TestEach: a refusal does not affect other subjects, and is an object for programs; another error ends the loop, and names the subjects that were not tried.
func TestEach(t *testing.T) {
	t.Parallel()
	for asJSON, want := range map[bool]struct{ out, errs string }{
		false: {"a: done\n", "b: refused: it is closed\n"},
		true:  {out: `{"subject":"a","refused":false,"result":"done"}` + "\n" + `{"subject":"b","refused":true,"result":"it is\nclosed\u009b"}` + "\n"},
	} {
		var out, errs bytes.Buffer
		o := order{notDone: "refused", asJSON: asJSON}
		o.do = func(_ context.Context, subject string) (string, error) {
			switch subject {
			case "b":
				return "", refusal("it is\nclosed\u009b")
			case "c":
				return "", errors.New("broken")
			}
			return o.line(subject, "done"), nil
		}
		err := o.each(t.Context(), cli.World{Out: &out, Err: &errs}, []string{"a", "b", "c", "d", "e"})
		if err == nil || err.Error() != "c: broken\nNot tried: d, e" || out.String() != want.out || errs.String() != want.errs {
			t.Errorf("got %v, output %q, errors %q", err, &out, &errs)
		}
	}
}

// TestAccepted: a reason of errand's is a refusal; an answer of something else names the address and is cut.
func TestAccepted(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{"acme/shop#1 is closed": true, "<html>" + strings.Repeat("x", 1000): false} {
		for _, status := range []int{http.StatusBadRequest, http.StatusConflict, http.StatusBadGateway} {
			_, err := accepted(selfclient.Answer{Address: "127.0.0.1:8080", Status: status, Named: true, Body: []byte(text)}, nil)
			var reason refusal
			if errors.As(err, &reason) != refused || err == nil || !refused && (!strings.Contains(err.Error(), "127.0.0.1:8080") || len(err.Error()) > 500) {
				t.Errorf("%d %.20q: got %v", status, text, err)
			}
		}
	}
}
