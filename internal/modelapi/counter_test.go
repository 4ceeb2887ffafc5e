package modelapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCounter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind, body string
		want       Usage
		not        bool
		asked      int64
	}{
		"anthropic, cached for an hour": {kind: sseType, body: stream(
			`{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":7,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}}}`,
			`{"type":"message_delta","usage":{"cache_creation_input_tokens":30,"output_tokens":9}}`),
			want: Usage{Model: "claude-x", Input: 7, Output: 9, CacheWrite: 30, CacheWriteHour: 20}},
		"anthropic, shortened first": {body: `{"model":"m","usage":{"input_tokens":23,"output_tokens":10,"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":35},{"type":"message","input_tokens":23,"output_tokens":10}]}}`,
			want: Usage{Model: "m", Input: 203, Output: 45}},
		"anthropic, shortened first, streamed": {kind: sseType, body: stream(
			`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":23,"output_tokens":1}}}`,
			`{"type":"message_delta","usage":{"output_tokens":10,"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":35},{"type":"message","input_tokens":23,"output_tokens":10}]}}`,
			`{"type":"message_delta","usage":{"output_tokens":10,"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":35},{"type":"message","input_tokens":23,"output_tokens":10}]}}`),
			want: Usage{Model: "m", Input: 203, Output: 45}},
		"iterations of another kind": {body: `{"model":"m","usage":{"input_tokens":23,"output_tokens":10,"iterations":3}}`,
			want: Usage{Model: "m", Input: 23, Output: 10}},
		"anthropic, an hour of more than all": {body: `{"usage":{"cache_creation_input_tokens":3,"cache_creation":{"ephemeral_1h_input_tokens":20}}}`,
			want: Usage{CacheWrite: 3, CacheWriteHour: 3}},
		"openai, chat streamed without usage": {asked: 100, kind: sseType, body: stream(
			`{"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"`+strings.Repeat("x", 40)+`"}},{"index":1,"delta":{"reasoning_content":"`+strings.Repeat("y", 20)+`"}}]}`,
			`{"model":"gpt-x","choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"bash","arguments":"`+strings.Repeat("z", 36)+`"}}]}}]}`,
			`{"model":"gpt-x","choices":[{"delta":{"content":null}}]}`, `[DONE]`),
			want: Usage{Model: "gpt-x", Input: 100, Output: 25}},
		"gemini, cut": {asked: 100, kind: sseType, body: stream(
			`{"modelVersion":"gemini-x","candidates":[{"content":{"parts":[{"text":"` + strings.Repeat("x", 60) + `"},{"functionCall":{"name":"sh","args":{"a":"` + strings.Repeat("y", 12) + `"}},"thoughtSignature":"` + strings.Repeat("z", 500) + `"}]}}]}`),
			want: Usage{Model: "gemini-x", Input: 100, Output: 20}},
		"gemini, to its end": {kind: sseType, body: stream(
			`{"modelVersion":"gemini-x","candidates":[{"content":{"parts":[{"text":"` + strings.Repeat("x", 400) + `"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":3}}`),
			want: Usage{Model: "gemini-x", Input: 20, Output: 3}},
		"a stream that ends before its first event": {asked: 100, kind: sseType, body: stream(`{"type":"response.created","response":{"model":"gpt-x","usage":null}}`),
			want: Usage{Model: "gpt-x", Input: 100}},
		"an error event": {asked: 100, kind: sseType, body: stream(`{"type":"error","error":{"type":"overloaded_error"}}`), not: true},
		"an incomplete answer that is not streamed": {asked: 100, body: `{"type":"message","content":[{"text":"` + strings.Repeat("x", 43), want: Usage{Input: 100, Output: 20}},
		"an answer without usage":                   {asked: 100, body: `{"type":"message"}`, want: Usage{Input: 100, Output: 4}},
		"an error that is not streamed":             {asked: 100, body: `{"type":"error","error":{"type":"overloaded_error"}}`, not: true},
		"anthropic, whole": {body: `{"type":"message","model":"claude-x","content":[],"usage":{"input_tokens":7,"output_tokens":5,"cache_creation_input_tokens":3,"cache_read_input_tokens":2}}`,
			want: Usage{Model: "claude-x", Input: 7, Output: 5, CacheWrite: 3, CacheRead: 2}},
		"anthropic, streamed": {kind: sseType, body: stream(
			`{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":7,"output_tokens":1,"cache_creation_input_tokens":3,"cache_read_input_tokens":2}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`, `{"type":"ping"}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}`, `{"type":"message_stop"}`),
			want: Usage{Model: "claude-x", Input: 7, Output: 12, CacheWrite: 3, CacheRead: 2}},
		"anthropic, cut": {kind: sseType, body: stream(
			`{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":7,"output_tokens":1}}}`,
			`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"`+strings.Repeat("x", 80)+`"}}`,
			`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"`+strings.Repeat("y", 20)+`"}}`) + "event: content_block_delta\ndata: {\"type\":",
			want: Usage{Model: "claude-x", Input: 7, Output: 25}},
		"openai, responses streamed": {kind: sseType, body: stream(
			`{"type":"response.created","response":{"model":"gpt-x","usage":null}}`, `{"type":"response.output_text.delta","delta":"hello"}`,
			`{"type":"response.completed","response":{"model":"gpt-x-2026","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":8,"output_tokens_details":{"reasoning_tokens":3}}}}`),
			want: Usage{Model: "gpt-x-2026", Input: 60, CacheRead: 40, Output: 8}},
		"openai, responses whole": {body: `{"object":"response","model":"gpt-x","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":8}}`,
			want: Usage{Model: "gpt-x", Input: 60, CacheRead: 40, Output: 8}},
		"openai, chat streamed": {kind: sseType, body: stream(
			`{"object":"chat.completion.chunk","model":"gpt-x","choices":[{"delta":{"content":"hi"}}],"usage":null}`,
			`{"object":"chat.completion.chunk","model":"gpt-x","choices":[],"usage":{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":2}}`, `[DONE]`),
			want: Usage{Model: "gpt-x", Input: 6, CacheRead: 4, Output: 2}},
		"gemini, streamed": {kind: sseType, body: stream(
			`{"candidates":[],"modelVersion":"gemini-x","usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":1}}`,
			`{"candidates":[],"modelVersion":"gemini-x","usageMetadata":{"promptTokenCount":20,"cachedContentTokenCount":5,"candidatesTokenCount":6,"thoughtsTokenCount":4}}`),
			want: Usage{Model: "gemini-x", Input: 15, CacheRead: 5, Output: 10}},
		"gemini, a list":   {body: `[{"modelVersion":"gemini-x","usageMetadata":{"promptTokenCount":20}},{"usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":3}}]`, want: Usage{Model: "gemini-x", Input: 20, Output: 3}},
		"an error":         {body: `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, not: true},
		"not JSON":         {body: `<html>`, not: true},
		"nothing":          {kind: sseType, not: true},
		"less than none":   {body: `{"usage":{"input_tokens":-5,"output_tokens":-1}}`},
		"more cached than": {body: `{"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":50}}}`, want: Usage{CacheRead: 5}},
	}
	for name, test := range tests {
		for _, size := range []int{1, 7, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				t.Parallel()
				c := NewCounter(test.kind, test.asked)
				for rest := test.body; rest != ""; {
					n := min(size, len(rest))
					if got, err := c.Write([]byte(rest[:n])); got != n || err != nil {
						t.Fatalf("got %d of %d bytes written, error %v", got, n, err)
					}
					rest = rest[n:]
				}
				got, ok := c.Close()
				if ok == test.not {
					t.Errorf("got ok %v", ok)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("usage (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestLongEventPasses: an event that is too long is not counted, and delays nothing.
func TestLongEventPasses(t *testing.T) {
	t.Parallel()
	c := NewCounter("text/event-stream", 0)
	chunk := []byte(strings.Repeat("x", 1<<20))
	if _, err := c.Write([]byte(`data: {"usage":{"output_tokens":3}}` + "\n\ndata: ")); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		if _, err := c.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if u, ok := c.Close(); !ok || u.Output != 3 {
		t.Errorf("got usage %+v, counted %v", u, ok)
	}
}

// FuzzCounter: counting any answer ends, is never negative, and does not depend on the pieces in which it is written.
func FuzzCounter(f *testing.F) {
	f.Add(sseType, stream(`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":7}}}`), 3)
	f.Add("application/json", `[{"usageMetadata":{"promptTokenCount":20}}]`, 1)
	f.Add(sseType, "data: {\"usage\":\ndata: {\"input_tokens\":1}}\n\n", 2)
	f.Fuzz(func(t *testing.T, kind, body string, size int) {
		whole, inPieces := NewCounter(kind, 9), NewCounter(kind, 9)
		if _, err := whole.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
		size = min(max(size, 1), 1+len(body))
		for rest := body; rest != ""; {
			n := min(size, len(rest))
			if _, err := inPieces.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		a, okA := whole.Close()
		b, okB := inPieces.Close()
		if a != b || okA != okB {
			t.Errorf("got %+v (%v) in one piece, %+v (%v) in many", a, okA, b, okB)
		}
		if a.Input < 0 || a.Output < 0 || a.CacheRead < 0 || a.CacheWrite < 0 {
			t.Errorf("got negative usage %+v", a)
		}
	})
}

// stream writes events as a provider sends them.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "event: x\ndata: %s\n\n", e)
	}
	return b.String()
}

const sseType = "text/event-stream; charset=utf-8"

// TestCurrentUsage: the usage of a stream is known while it is read, and estimated if it ends before it reports usage.
func TestCurrentUsage(t *testing.T) {
	t.Parallel()
	delta := `{"type":"response.output_text.delta","delta":"` + strings.Repeat("x", 400) + `"}`
	c := NewCounter(sseType, 1000)
	defer c.Close()
	if got := c.Current(); got != (Usage{}) {
		t.Errorf("before the first byte: got %+v", got)
	}
	if _, err := c.Write([]byte(stream(`{"type":"response.created","response":{"model":"gpt-x","usage":null}}`, delta, delta))); err != nil {
		t.Fatal(err)
	}
	want := Usage{Model: "gpt-x", Input: 1000, Output: 200}
	if got, ok := c.Close(); got != want || !ok {
		t.Errorf("incomplete answer: got %+v, %v", got, ok)
	}
}

// TestFinalUsageWins: usage at the end of a stream is what the provider bills, however long the text is.
func TestFinalUsageWins(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("-", 4000)
	for name, events := range map[string][]string{
		"anthropic": {
			`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":7,"output_tokens":1}}}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"` + long + `"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
		},
		"openai": {
			`{"type":"response.created","response":{"model":"m","usage":null}}`,
			`{"type":"response.output_text.delta","delta":"` + long + `"}`,
			`{"type":"response.completed","response":{"model":"m","usage":{"input_tokens":7,"output_tokens":9}}}`,
		},
	} {
		c := NewCounter(sseType, 1000)
		if _, err := c.Write([]byte(stream(events...))); err != nil {
			t.Fatal(err)
		}
		if got, ok := c.Close(); !ok || got != (Usage{Model: "m", Input: 7, Output: 9}) {
			t.Errorf("%s: got %+v, %v", name, got, ok)
		}
	}
}
