package simmodel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/google/go-cmp/cmp"
	"github.com/tmaxmax/go-sse"
)

// TestStreamsTheSame compares the streamed response with the unstreamed one.
func TestStreamsTheSame(t *testing.T) {
	t.Parallel()
	turn := simmodel.Turn{
		Thinking: "hm, let me see", Text: "Ünïcode and\n\nspaces  stay.", Bash: []string{"echo 'a  b'\n"},
		Tools: []simmodel.Call{{Name: "Noop"}},
	}
	srv, url := serve(t, simmodel.Config{Script: fixed(turn, simmodel.Turn{Text: "end"}), Key: key})
	whole := ask(t, url, user("x"))
	res, body := post(t, url, true, user("x"))
	if ct := res.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Errorf("got content type %q", ct)
	}
	var streamed reply
	var input strings.Builder
	var order []string
	for ev, err := range sse.Read(strings.NewReader(body), nil) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, ev.Type)
		applyEvent(t, []byte(ev.Data), &streamed, &input)
	}
	if diff := cmp.Diff(whole, streamed); diff != "" {
		t.Errorf("(-whole +streamed):\n%s", diff)
	}
	if order[0] != "message_start" || order[len(order)-1] != "message_stop" {
		t.Errorf("got events %v", order)
	}
	if whole.StopReason != "tool_use" {
		t.Errorf("got stop reason %q", whole.StopReason)
	}
	if got := srv.Totals(); got.Answers != 2 || got.Usage.Output != 2*whole.Usage.Output {
		t.Errorf("got totals %+v", got)
	}
}

// applyEvent applies an event to a reply as a client does.
func applyEvent(t *testing.T, data []byte, r *reply, input *strings.Builder) {
	t.Helper()
	var e struct {
		Type         string
		ContentBlock json.RawMessage `json:"content_block"`
		Delta        struct {
			Text, Thinking string
			PartialJSON    string `json:"partial_json"`
			StopReason     string `json:"stop_reason"`
		}
		Usage simmodel.Usage
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	switch last := len(r.Content) - 1; e.Type {
	case "content_block_start":
		var more reply
		if err := json.Unmarshal(fmt.Appendf(nil, `{"content":[%s]}`, e.ContentBlock), &more); err != nil {
			t.Fatal(err)
		}
		r.Content = append(r.Content, more.Content...)
		input.Reset()
	case "content_block_delta":
		r.Content[last].Text += e.Delta.Text
		r.Content[last].Thinking += e.Delta.Thinking
		input.WriteString(e.Delta.PartialJSON)
	case "content_block_stop":
		if input.Len() > 0 {
			if err := json.Unmarshal([]byte(input.String()), &r.Content[last].Input); err != nil {
				t.Fatal(err)
			}
		}
	case "message_delta":
		r.StopReason, r.Usage = e.Delta.StopReason, e.Usage
	}
}
