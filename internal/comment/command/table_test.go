package command

import (
	"strings"
	"testing"
)

func TestHelpListsEveryCommand(t *testing.T) {
	t.Parallel()
	for _, c := range Table() {
		if !strings.Contains(Help("errand"), c.Usage) || !strings.Contains(DocTable(), c.Usage) {
			t.Errorf("%s is missing", c.Verb)
		}
	}
}
