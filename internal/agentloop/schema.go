package agentloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/errand-bot/errand/internal/agentloop/wire"
)

// answerSchema is the required form of the answer. A nil one requires nothing.
type answerSchema struct {
	raw    map[string]any
	check  *jsonschema.Resolved
	answer json.RawMessage // the accepted answer
	wrong  string          // the problem with the last refused answer
}

// newAnswerSchema compiles a schema, which must describe an object because it becomes the input of a tool. A schema
// that refers to other documents is refused.
func newAnswerSchema(raw json.RawMessage) (*answerSchema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	s := &answerSchema{}
	if err := json.Unmarshal(raw, &s.raw); err != nil {
		return nil, fmt.Errorf("read the answer's schema: %w", err)
	}
	if s.raw["type"] != "object" {
		return nil, errors.New("the answer's schema does not describe an object")
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("read the answer's schema: %w", err)
	}
	var err error
	if s.check, err = schema.Resolve(nil); err != nil { // without a loader, external references are errors
		return nil, fmt.Errorf("read the answer's schema: %w", err)
	}
	return s, nil
}

// isAnswered reports whether an answer was accepted.
func (s *answerSchema) isAnswered() bool { return s != nil && s.answer != nil }

// problem describes the problem with the last refused answer, with a leading space.
func (s *answerSchema) problem() string {
	if s.wrong == "" {
		return ""
	}
	return " (the last did not fit: " + s.wrong + ")"
}

// validateAnswer validates an answer that came as a tool call.
func (s *answerSchema) validateAnswer(input json.RawMessage) toolResult {
	if !s.accept(input) {
		return refusedResult("The answer does not fit its schema: %s. Call this tool again.", s.wrong)
	}
	return toolResult{text: "The answer was accepted."}
}

func (s *answerSchema) accept(input json.RawMessage) bool {
	var doc any
	err := json.Unmarshal(input, &doc)
	if err == nil {
		err = s.check.Validate(doc)
	}
	if err != nil {
		s.wrong = oneLine(err)
		return false
	}
	s.answer, s.wrong = append(json.RawMessage(nil), input...), ""
	return true
}

// oneLine formats a validation error on one line of bounded length.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "validating root: ")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}

// extract finds the answer in a text: the last fenced block that is valid, or the whole text.
func (s *answerSchema) extract(text string) bool {
	parts := strings.Split(text, "```")
	for i := len(parts) - 2; i > 0; i -= 2 {
		_, body, _ := strings.Cut(parts[i], "\n")
		if strings.HasPrefix(strings.TrimSpace(body), "{") && s.accept(json.RawMessage(strings.TrimSpace(body))) {
			return true
		}
	}
	whole := strings.TrimSpace(text)
	return strings.HasPrefix(whole, "{") && s.accept(json.RawMessage(whole))
}

// describe returns the tool that accepts the answer.
func (s *answerSchema) describe() anthropic.ToolUnionParam {
	return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name: wire.ToolAnswer, Description: param.NewOpt("Give your final answer, when the work is done. This ends the run."), InputSchema: inputSchema(s.raw),
	}}
}

// inputSchema converts the JSON schema of an object for the API's client.
func inputSchema(schema map[string]any) anthropic.ToolInputSchemaParam {
	in := anthropic.ToolInputSchemaParam{Properties: map[string]any{}, ExtraFields: map[string]any{}}
	for k, v := range schema {
		switch k {
		case "type":
		case "properties":
			in.Properties = v
		case "required":
			list, _ := v.([]any)
			for _, name := range list {
				in.Required = append(in.Required, fmt.Sprint(name))
			}
		default:
			in.ExtraFields[k] = v
		}
	}
	return in
}
