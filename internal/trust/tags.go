package trust

import (
	"regexp"
	"strings"
)

// shownTags are the elements that GitHub keeps, without those that only carry hidden things.
func shownTags() map[string]bool {
	shown := map[string]bool{}
	for name := range strings.FieldsSeq(`a abbr b bdo blockquote br caption cite code dd del details dfn div dl dt em
		figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p picture pre q rp rt ruby s samp small span strike
		strong sub summary sup table tbody td tfoot th thead time tr tt ul var wbr`) {
		shown[name] = true
	}
	return shown
}

// literalTags are the elements that GitHub's Markdown shows as text, angle brackets and all. Here
// they become text too, so that what stands in them is read as GitHub reads it.
func literalTags() map[string]bool {
	literal := map[string]bool{}
	for name := range strings.FieldsSeq(`title textarea style xmp iframe noembed noframes script plaintext`) {
		literal[name] = true
	}
	return literal
}

// The values that attributes may have.
var (
	anyAddress = regexp.MustCompile(``)
	plainSize  = regexp.MustCompile(`^[0-9]{1,4}(?:px|%)?$`)
	number     = regexp.MustCompile(`^[0-9]{1,4}$`)
	switchedOn = regexp.MustCompile(`^(?i:open|true)?$`)
	alignment  = regexp.MustCompile(`^(?i:left|right|center|justify|char|top|middle|bottom)$`)
)

// keptAttributes decide where a link or image leads, or how it, a table or a list is laid out, each with
// the values that do so. All other attributes, and other values, can carry text that nobody sees.
func keptAttributes() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"href": anyAddress, "src": anyAddress, "width": plainSize, "height": plainSize,
		"colspan": number, "rowspan": number, "start": number, "open": switchedOn, "align": alignment,
	}
}
