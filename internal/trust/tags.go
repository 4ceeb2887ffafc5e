package trust

import (
	"regexp"
	"strings"
)

// shownTags returns the elements that GitHub keeps, except those that only contain hidden content.
func shownTags() map[string]bool {
	shown := map[string]bool{}
	for name := range strings.FieldsSeq(`a abbr b bdo blockquote br caption cite code dd del details dfn div dl dt em
		figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p picture pre q rp rt ruby s samp small span strike
		strong sub summary sup table tbody td tfoot th thead time tr tt ul var wbr`) {
		shown[name] = true
	}
	return shown
}

// literalTags returns the elements whose tags GitHub's Markdown shows as text. Strip converts them to text, so that
// their content is parsed as on GitHub.
func literalTags() map[string]bool {
	literal := map[string]bool{}
	for name := range strings.FieldsSeq(`title textarea style xmp iframe noembed noframes script plaintext`) {
		literal[name] = true
	}
	return literal
}

// Allowed values of attributes.
var (
	anyAddress = regexp.MustCompile(``)
	plainSize  = regexp.MustCompile(`^[0-9]{1,4}(?:px|%)?$`)
	number     = regexp.MustCompile(`^[0-9]{1,4}$`)
	switchedOn = regexp.MustCompile(`^(?i:open|true)?$`)
	alignment  = regexp.MustCompile(`^(?i:left|right|center|justify|char|top|middle|bottom)$`)
)

// keptAttributes returns the attributes that define the target of a link or image or the layout of text, each with its
// allowed values. All other attributes and values can contain invisible text.
func keptAttributes() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"href": anyAddress, "src": anyAddress, "width": plainSize, "height": plainSize,
		"colspan": number, "rowspan": number, "start": number, "open": switchedOn, "align": alignment,
	}
}
