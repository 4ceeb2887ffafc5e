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

// answerSchema is the form that the answer must have. A nil one asks for nothing.
type answerSchema struct {
	raw    map[string]any
	check  *jsonschema.Resolved
	answer json.RawMessage // that fits
	wrong  string          // what was wrong with the last that did not
}

// newAnswerSchema compiles a schema, which must describe an object: it becomes the input of a tool.
// A schema that refers to other documents is refused.
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
	if s.check, err = schema.Resolve(nil); err != nil { // without a loader, so that it refers to nothing outside
		return nil, fmt.Errorf("read the answer's schema: %w", err)
	}
	return s, nil
}

// answered reports whether an answer that fits was given.
func (s *answerSchema) answered() bool { return s != nil && s.answer != nil }

// why says what was wrong with the last answer, with a blank before it.
func (s *answerSchema) why() string {
	if s.wrong == "" {
		return ""
	}
	return " (the last did not fit: " + s.wrong + ")"
}

// take judges an answer that came as a call.
func (s *answerSchema) take(input json.RawMessage) toolResult {
	if !s.fits(input) {
		return refused("The answer does not fit its schema: %s. Call this tool again.", s.wrong)
	}
	return toolResult{"The answer was taken.", false}
}

func (s *answerSchema) fits(input json.RawMessage) bool {
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

// oneLine is a validation error on one line of bounded length.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "validating root: ")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}

// extract takes the answer from a text: the last fenced block that fits, or the whole text.
func (s *answerSchema) extract(text string) bool {
	parts := strings.Split(text, "```")
	for i := len(parts) - 2; i > 0; i -= 2 {
		_, body, _ := strings.Cut(parts[i], "\n")
		if strings.HasPrefix(strings.TrimSpace(body), "{") && s.fits(json.RawMessage(strings.TrimSpace(body))) {
			return true
		}
	}
	whole := strings.TrimSpace(text)
	return strings.HasPrefix(whole, "{") && s.fits(json.RawMessage(whole))
}

// offer is the tool that takes the answer.
func (s *answerSchema) offer() anthropic.ToolUnionParam {
	return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name: wire.ToolAnswer, Description: param.NewOpt("Give your final answer, when the work is done. This ends the run."), InputSchema: inputSchema(s.raw),
	}}
}

// inputSchema is a JSON schema of an object as the API's client wants it.
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
