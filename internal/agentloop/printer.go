package agentloop

import (
	"encoding/json"
	"io"

	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// printer writes lines. Write errors are ignored: the output is a file of the runner, which ends the run if the disk is
// full.
type printer struct{ enc *json.Encoder }

func newPrinter(w io.Writer) *printer {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &printer{enc}
}

func (p *printer) print(l wire.Line) {
	if len(l.Input) > 0 && !json.Valid(l.Input) {
		l.Input = nil // a truncated call; the encoder would refuse the whole line
	}
	_ = p.enc.Encode(l)
}
