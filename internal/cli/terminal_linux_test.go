package cli_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// TestTypedAheadIsDiscarded: neither what the terminal holds nor what was read from it before is an answer to a later question.
func TestTypedAheadIsDiscarded(t *testing.T) {
	t.Parallel()
	keyboard, screen := clitest.NewTerminal(t)
	in := bufio.NewReader(io.MultiReader(strings.NewReader("n\ny\n"), screen))
	if line, err := in.ReadString('\n'); err != nil || line != "n\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if _, err := keyboard.WriteString("y\ny"); err != nil {
		t.Fatal(err)
	}
	if err := cli.DiscardTyped(screen, in); err != nil {
		t.Fatal(err)
	}
	if _, err := keyboard.WriteString("later\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := in.ReadString('\n'); err != nil || line != "later\n" {
		t.Errorf("got %q, %v", line, err)
	}
}
