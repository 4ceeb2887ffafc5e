package agentloop

import (
	"encoding/json"
	"io"

	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// printer writes lines. What cannot be written is lost: the runner reads from a file, and when its
// disk is full the run ends by that.
type printer struct{ enc *json.Encoder }

func newPrinter(w io.Writer) *printer {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &printer{enc}
}

func (p *printer) print(l wire.Line) {
	if len(l.Input) > 0 && !json.Valid(l.Input) {
		l.Input = nil // a cut call; the encoder would refuse the whole line
	}
	_ = p.enc.Encode(l)
}
