package e2e

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// operator does what `errand cancel` and the like do: operator N VERB [ARGS]. It prints the answer.
func operator(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	n, err := s.number(args[0])
	ts.Check(err)
	form := url.Values{"args": {strings.Join(args[2:], " ")}, "id": {rand.Text()}}
	status, body, err := s.post(fmt.Sprintf("/tasks/%s/%d/actions/%s", s.full, n, args[1]), form)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
	if (status == http.StatusOK) == neg {
		ts.Fatalf("%v: %d %s", args, status, body)
	}
}

// post returns the status and the body of errand's answer to a form, with the administrator's token.
func (s *story) post(path string, form url.Values) (int, string, error) {
	return s.requestWith(http.MethodPost, path, strings.NewReader(form.Encode()), true)
}
