package proc

import (
	"io"
	"strings"
	"testing"
)

func TestCommandsDieFirst(t *testing.T) {
	for _, isolation := range isolations(t) {
		p, output := startScript(t, isolation, "until [ $(cat /proc/self/oom_score_adj) = 500 ]; do sleep 0.01; done; sh -c 'cat /proc/self/oom_score_adj'")
		exit := p.Wait()
		if got, err := io.ReadAll(output); err != nil || strings.TrimSpace(string(got)) != oomScore || exit.Code != 0 {
			t.Errorf("%s: %q, %v, %+v", isolation, got, err, exit)
		}
	}
}
