package modelapi

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// content returns a kind of content of 300,000 bytes in base64, which would be 100,000 tokens as text.
func content(begin string) string {
	return base64.StdEncoding.EncodeToString([]byte(begin + strings.Repeat("\x00", 300_000-len(begin))))
}

const pngBegin = "\x89PNG\r\n\x1a\n"

// TestImagesCountLess: an inline image counts at most 10,000 tokens in every place where the API decodes one. What it would read
// as text, what is none of the known kinds, and what different readers could read differently counts by its length.
func TestImagesCountLess(t *testing.T) {
	t.Parallel()
	png, text := content(pngBegin), content("Read this text. ")
	claude := func(block string) string {
		return `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"See"},` + block + `]}]}`
	}
	responses := func(item string) string {
		return `{"input":[{"type":"message","role":"user","content":"See"},` + item + `]}`
	}
	chat := func(part string) string { return `{"messages":[{"role":"user","content":[` + part + `]}]}` }
	gemini := func(part string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"See"},` + part + `]}]}`
	}
	image := func(source string) string { return `{"type":"image","source":` + source + `}` }
	base := func(media, data string) string {
		return `{"type":"base64","media_type":"` + media + `","data":"` + data + `"}`
	}
	output := func(part string) string {
		return `{"type":"function_call_output","call_id":"c","output":[` + part + `]}`
	}
	tests := map[string]struct {
		api   API
		body  string
		image bool
	}{
		"Claude":                             {Anthropic, claude(image(base("image/png", png))), true},
		"Claude, JPEG":                       {Anthropic, claude(image(base("image/jpeg", content("\xff\xd8\xff\xe0")))), true},
		"Claude, GIF":                        {Anthropic, claude(image(base("image/gif", content("GIF89a")))), true},
		"Claude, WebP":                       {Anthropic, claude(image(base("image/webp", content("RIFF\x10\x00\x00\x00WEBPVP8 ")))), true},
		"Claude, result of a tool":           {Anthropic, claude(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"x"},` + image(base("image/png", png)) + `]}`), true},
		"Claude, type last":                  {Anthropic, claude(`{"source":{"data":"` + png + `","media_type":"image/png","type":"base64"},"cache_control":{"type":"ephemeral"},"type":"image"}`), true},
		"Claude, a text":                     {Anthropic, claude(`{"type":"text","text":"` + png + `"}`), false},
		"Claude, a text called image":        {Anthropic, claude(image(base("image/png", text))), false},
		"Claude, another kind":               {Anthropic, claude(image(base("image/bmp", content("BM")))), false},
		"Claude, another label":              {Anthropic, claude(image(base("image/gif", png))), false},
		"Claude, not in base64":              {Anthropic, claude(image(base("image/png", strings.Repeat("%", 400_000)))), false},
		"Claude, a document of text":         {Anthropic, claude(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + png + `"}}`), false},
		"Claude, a document, called image":   {Anthropic, claude(`{"type":"document","source":` + base("image/png", png) + `}`), false},
		"Claude, a source of text":           {Anthropic, claude(image(`{"type":"text","media_type":"image/png","data":"` + png + `"}`)), false},
		"Claude, two types":                  {Anthropic, claude(`{"type":"document","type":"image","source":` + base("image/png", png) + `}`), false},
		"Claude, two types, one folded":      {Anthropic, claude(`{"type":"image","Type":"document","source":` + base("image/png", png) + `}`), false},
		"Claude, a folded type":              {Anthropic, claude(`{"Type":"image","source":` + base("image/png", png) + `}`), false},
		"Claude, two sources":                {Anthropic, claude(`{"type":"image","source":` + base("image/png", png) + `,"source":{"type":"text"}}`), false},
		"Claude, two kinds of source":        {Anthropic, claude(image(`{"type":"text","type":"base64","media_type":"image/png","data":"` + png + `"}`)), false},
		"Claude, a list of sources":          {Anthropic, claude(image(`[` + base("image/png", png) + `]`)), false},
		"Claude, a list of types":            {Anthropic, claude(`{"type":["image"],"source":` + base("image/png", png) + `}`), false},
		"Claude, two data":                   {Anthropic, claude(image(`{"type":"base64","media_type":"image/png","data":"` + text + `","data":"` + png[:400] + `"}`)), false},
		"Claude, argument of a tool":         {Anthropic, claude(`{"type":"tool_use","id":"t","name":"n","input":` + image(base("image/png", png)) + `}`), false},
		"Claude, schema of a tool":           {Anthropic, `{"tools":[{"name":"n","input_schema":` + image(base("image/png", png)) + `}]}`, false},
		"Claude, JSON in a text":             {Anthropic, claude(`{"type":"text","text":` + quoted(image(base("image/png", png))) + `}`), false},
		"Claude, of another API":             {Anthropic, claude(`{"type":"input_image","image_url":"data:image/png;base64,` + png + `"}`), false},
		"Responses":                          {OpenAI, responses(`{"role":"user","content":[{"type":"input_image","detail":"high","image_url":"data:image/png;base64,` + png + `"}]}`), true},
		"Responses, result of a tool":        {OpenAI, responses(output(`{"type":"input_image","image_url":"data:image/png;base64,` + png + `"}`)), true},
		"Responses, a text called image":     {OpenAI, responses(output(`{"type":"input_image","image_url":"data:image/png;base64,` + text + `"}`)), false},
		"Responses, not a data URL":          {OpenAI, responses(output(`{"type":"input_image","image_url":"` + png + `"}`)), false},
		"Responses, a file":                  {OpenAI, responses(output(`{"type":"input_file","image_url":"data:image/png;base64,` + png + `"}`)), false},
		"Responses, output of a tool":        {OpenAI, responses(`{"type":"function_call_output","output":"data:image/png;base64,` + png + `"}`), false},
		"Responses, parameters of a tool":    {OpenAI, `{"tools":[{"type":"function","name":"n","parameters":{"type":"input_image","image_url":"data:image/png;base64,` + png + `"}}]}`, false},
		"Chat":                               {OpenAI, chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `","detail":"low"}}`), true},
		"Chat, two addresses":                {OpenAI, chat(`{"type":"image_url","image_url":{"url":"x","url":"data:image/png;base64,` + png + `"}}`), false},
		"Chat, a text":                       {OpenAI, chat(`{"type":"text","text":"data:image/png;base64,` + png + `"}`), false},
		"Chat, a text called image":          {OpenAI, chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + text + `"}}`), false},
		"Gemini":                             {Gemini, gemini(`{"inlineData":{"data":"` + png + `","mimeType":"image/png"}}`), true},
		"Gemini, its other names":            {Gemini, gemini(`{"inline_data":{"mime_type":"image/png","data":"` + png + `"}}`), true},
		"Gemini, result of a function":       {Gemini, gemini(`{"functionResponse":{"name":"f","response":{"output":"x"},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]}}`), true},
		"Gemini, a file of text":             {Gemini, gemini(`{"inlineData":{"data":"` + text + `","mimeType":"text/plain"}}`), false},
		"Gemini, an image read as text":      {Gemini, gemini(`{"inlineData":{"data":"` + png + `","mimeType":"text/plain"}}`), false},
		"Gemini, two labels":                 {Gemini, gemini(`{"inlineData":{"data":"` + png + `","mimeType":"image/png","mime_type":"text/plain"}}`), false},
		"Gemini, a text called image":        {Gemini, gemini(`{"inlineData":{"data":"` + text + `","mimeType":"image/png"}}`), false},
		"Gemini, argument of a function":     {Gemini, gemini(`{"functionCall":{"name":"f","args":{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}}}`), false},
		"Gemini, in the result's own fields": {Gemini, gemini(`{"functionResponse":{"name":"f","response":{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}}}`), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !json.Valid([]byte(test.body)) {
				t.Fatal("the request is not JSON")
			}
			want := int64(len(test.body)) / bytesPerToken
			if test.image {
				want = int64(len(test.body)-400_000)/bytesPerToken + maxImageTokens
			}
			if got := test.api.inputTokens([]byte(test.body)); got < want-7 || got > want { // the URL may begin the image
				t.Errorf("got %d tokens, want %d", got, want)
			}
		})
	}
}

func quoted(text string) string {
	data, _ := json.Marshal(text) // of strings: cannot fail
	return string(data)
}

// TestSmallImagesCountByLength: an image never counts more than its bytes would as text, and each counts on its own.
func TestSmallImagesCountByLength(t *testing.T) {
	t.Parallel()
	part := func(size int) string {
		data := base64.StdEncoding.EncodeToString([]byte(pngBegin + strings.Repeat(".", size-len(pngBegin))))
		return `{"inlineData":{"mimeType":"image/png","data":"` + data + `"}}`
	}
	small := `{"contents":[{"parts":[` + part(900) + `,` + part(900) + `]}]}`
	if got, want := Gemini.inputTokens([]byte(small)), int64(len(small)/bytesPerToken); got != want {
		t.Errorf("small images: got %d tokens, want %d", got, want)
	}
	mixed := `{"contents":[{"parts":[` + part(900_000) + `,` + part(900) + `,` + part(900_000) + `]}]}`
	want := 2*maxImageTokens + (int64(len(mixed))-2*1_200_000)/bytesPerToken
	if got := Gemini.inputTokens([]byte(mixed)); got != want {
		t.Errorf("large images: got %d tokens, want %d", got, want)
	}
}

// FuzzImageSizes: the images of any body are within it, so an estimate is neither negative nor more than the body's length.
func FuzzImageSizes(f *testing.F) {
	f.Add(`{"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]}]}`)
	f.Add(`{"input":[{"output":[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]}]}`)
	f.Add(`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}]}`)
	f.Add(`"image"}}]]{"type":[{"type":"image"`)
	f.Fuzz(func(t *testing.T, body string) {
		for _, api := range APIs() {
			sum := int64(0)
			for _, size := range api.imageSizes([]byte(body)) {
				if sum += size; size <= 0 {
					t.Errorf("%s: got an image of %d bytes", api, size)
				}
			}
			if got := api.inputTokens([]byte(body)); sum > int64(len(body)) || got < 1 || got > int64(len(body))/bytesPerToken+1 {
				t.Errorf("%s: images of %d bytes, %d tokens, in %d bytes", api, sum, got, len(body))
			}
		}
	})
}
