package operator

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// run runs a command line.
func run(ctx context.Context, w cli.World) int {
	return cli.Execute(ctx, w, cli.Root(w, Commands(w)...))
}

// call runs a command line where nobody can answer questions.
func call(t *testing.T, env map[string]string, args ...string) (code int, out, err string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), cli.World{Args: args, In: strings.NewReader(""), Out: &o, Err: &e, Lookup: clitest.Lookup(env)})
	return code, o.String(), e.String()
}
