package modelapi

import (
	"bytes"
	"encoding/base64"

	"github.com/errand-bot/errand/internal/attachment"
)

// maxImageTokens is the most that an image counts in an estimate. Images cost tokens by their size in pixels, of which
// providers document a maximum: about 1,600 for Anthropic ("Vision", "Evaluate image size"), 10,000 patches of one token for
// OpenAI with the detail "original", which Codex requests ("Images and vision", "Model sizing behavior"), and about 2,240 for
// Gemini ("Media resolution"). Small models of OpenAI charge more tokens at a lower price. The provider's own count replaces
// the estimate at the end of the answer.
const maxImageTokens = 10_000

// inputTokens estimates the length of a request in tokens: by its bytes, except that images count at most maxImageTokens.
// An image is content that the API decodes as one and that begins as one. Everything else counts as text, also if it
// only claims to be an image.
func (a API) inputTokens(body []byte) int64 {
	text, images := int64(len(body)), int64(0)
	for _, size := range a.imageSizes(body) {
		text -= size
		images += min(size/bytesPerToken, maxImageTokens)
	}
	return max(text/bytesPerToken+images, 1)
}

// imageSizes returns the size in bytes of each inline image in a request.
func (a API) imageSizes(body []byte) []int64 {
	if !bytes.Contains(body, []byte("image")) {
		return nil // a common case, which this check makes fast
	}
	f := imageFinder{api: a}
	walk(body, f.see)
	f.closeTo(0)
	return f.sizes
}

// imageFinder finds the images of a request while it is walked.
type imageFinder struct {
	api   API
	open  []*block // the objects that contain the current value, the outermost first
	sizes []int64
}

// A block is an object of a request. It has the keys that an image consists of.
type block struct {
	key    field // its own key
	fields [fields]struct {
		count  int // if it is not 1, readers may read different values
		text   []byte
		object *block
	}
}

// A field is a key of a block that concerns images.
type field int

// The fields.
const (
	fieldNone   field = iota
	fieldType         // type
	fieldSource       // source: Anthropic
	fieldMedia        // media_type: Anthropic; mimeType: Gemini
	fieldData         // data: Anthropic, Gemini
	fieldImage        // image_url: OpenAI
	fieldURL          // url: chats of OpenAI
	fieldInline       // inlineData: Gemini
	fields
)

// fieldOf returns the field of a key. Exact reports whether the key is spelled as in the API.
func fieldOf(key *name) (f field, exact bool) {
	switch key.folded {
	case "type":
		return fieldType, key.plain == "type"
	case "source":
		return fieldSource, key.plain == "source"
	case "mediatype":
		return fieldMedia, key.plain == "media_type"
	case "mimetype":
		return fieldMedia, key.plain == "mimeType" || key.plain == "mime_type"
	case "data":
		return fieldData, key.plain == "data"
	case "imageurl":
		return fieldImage, key.plain == "image_url"
	case "url":
		return fieldURL, key.plain == "url"
	case "inlinedata":
		return fieldInline, key.plain == "inlineData" || key.plain == "inline_data"
	}
	return fieldNone, true
}

// see processes a value. Schemas and the arguments and results of tools are texts, even if they contain what looks like an
// image.
func (f *imageFinder) see(v value) (into bool) {
	f.closeTo(v.Depth)
	key, exact := fieldOf(v.Key)
	if v.Depth > 0 && v.Depth == len(f.open) && key != fieldNone {
		found := &f.open[v.Depth-1].fields[key]
		if found.count++; !exact { // a list counts with its elements
			found.count++
		}
		if v.Kind == '"' {
			found.text = v.Raw
		}
	}
	if v.Kind == '{' {
		f.open = append(f.open, &block{key: key})
	}
	return !f.api.isFreeForm(v.Key.plain)
}

// closeTo closes all objects but the outermost ones.
func (f *imageFinder) closeTo(depth int) {
	for len(f.open) > depth {
		last := len(f.open) - 1
		b := f.open[last]
		if f.open = f.open[:last]; last > 0 && b.key != fieldNone {
			f.open[last-1].fields[b.key].object = b
		}
		if size := f.api.imageSize(b); size > 0 {
			f.sizes = append(f.sizes, size)
		}
	}
}

// imageSize returns the size of a block's image in bytes, 0 if it has none.
func (a API) imageSize(b *block) int64 {
	kind := string(b.text(fieldType))
	switch {
	case a == Anthropic && kind == "image":
		if s := b.object(fieldSource); s != nil && string(s.text(fieldType)) == "base64" {
			return dataSize(s.text(fieldMedia), s.text(fieldData))
		}
	case a == OpenAI && kind == "input_image":
		return dataURLSize(b.text(fieldImage))
	case a == OpenAI && kind == "image_url":
		if u := b.object(fieldImage); u != nil {
			return dataURLSize(u.text(fieldURL))
		}
	case a == Gemini:
		if d := b.object(fieldInline); d != nil {
			return dataSize(d.text(fieldMedia), d.text(fieldData))
		}
	}
	return 0
}

// text returns the only value of a field as written, or nil if it is not a string.
func (b *block) text(f field) []byte {
	if b.fields[f].count != 1 {
		return nil
	}
	return b.fields[f].text
}

// object returns the only value of a field, or nil if it is not an object.
func (b *block) object(f field) *block {
	if b.fields[f].count != 1 {
		return nil
	}
	return b.fields[f].object
}

// dataURLSize returns the size of an image in a data URL, as dataSize does.
func dataURLSize(url []byte) int64 {
	rest, ok := bytes.CutPrefix(url, []byte("data:"))
	media, data, encoded := bytes.Cut(rest, []byte(";base64,"))
	if !ok || !encoded {
		return 0
	}
	return dataSize(media, data)
}

// dataSize returns the size of data in base64 if it begins as an image of the media type, else 0.
func dataSize(media, data []byte) int64 {
	const enough = 64
	content := make([]byte, enough)
	n, err := base64.StdEncoding.Decode(content, data[:min(len(data), enough)&^3])
	if err != nil {
		return 0
	}
	if is, _ := attachment.ImageType(content[:n]); is == "" || is != string(media) {
		return 0
	}
	return int64(len(data))
}
