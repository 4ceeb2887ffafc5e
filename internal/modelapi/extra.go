package modelapi

import "strconv"

// Extra is something that a call's body asks of the provider beside an answer of the model that it names.
type Extra struct {
	// Name is how the body calls it. It was written on a VM.
	Name string
	Kind ExtraKind
}

// ExtraKind is why agents do not get an Extra.
type ExtraKind int

// The kinds.
const (
	// ExtraReach: the provider would reach other hosts for the agent, or run a tool of its own. What a VM may not
	// reach by itself it could else have fetched, or told.
	ExtraReach ExtraKind = iota + 1
	// ExtraKept: it refers to what is stored in the provider's account, which may be anybody's.
	ExtraKept
	// ExtraLater: the answer would come by another request, and not be counted.
	ExtraLater
	// ExtraDear: it costs more than the model's price says.
	ExtraDear
	// ExtraMany: it has the model make more than one answer.
	ExtraMany
	// ExtraUnclear: it bounds the cost, and two readers of the body may read two bounds.
	ExtraUnclear
)

// Extra returns the first that a call's body asks for, nil if there is none; of the kind ExtraReach only if reach is
// not allowed. What is merely said in a conversation is none, nor is what programs hand to tools and get from them. The
// body is valid JSON.
func (a API) Extra(body []byte, reach bool) *Extra {
	var found *Extra
	walk(body, func(v value) bool {
		if found != nil || v.Kind == '"' && says(v.Key.plain) && v.Owner.folded != "tools" {
			return false // of a string there is nothing to go into
		}
		for _, look := range []func(value) *Extra{a.ofAccount, a.tool, a.address, several} {
			if e := look(v); e != nil && (e.Kind != ExtraReach || !reach) {
				found = e
				return false
			}
		}
		return !a.free(v.Key.plain)
	})
	return found
}

// ofAccount sees what refers to the account, and how dearly and when it shall be answered.
func (a API) ofAccount(v value) *Extra {
	key := v.Key.folded
	if v.Kind == '"' && len(v.Raw) > 0 {
		switch {
		case key == "fileid" || key == "fileids":
			return &Extra{Name: v.Key.plain, Kind: ExtraKept}
		case a == OpenAI && key == "type" && v.text() == "item_reference":
			return &Extra{Name: "item_reference", Kind: ExtraKept}
		}
	}
	if v.Depth != 1 || v.Kind == 'n' || v.Kind == '[' { // an empty list is none; of others each value comes
		return nil
	}
	switch key {
	case "previousresponseid", "conversation", "prompt", "cachedcontent", "container":
		return &Extra{Name: v.Key.plain, Kind: ExtraKept}
	case "background":
		if v.Kind != 'f' {
			return &Extra{Name: v.Key.plain, Kind: ExtraLater}
		}
	case "servicetier", "speed", "inferencegeo":
		if v.Kind != '"' {
			return &Extra{Name: v.Key.plain, Kind: ExtraDear}
		}
		switch tier := v.text(); tier {
		case "", "auto", "default", "standard", "standard_only", "flex", "global":
		default:
			return &Extra{Name: v.Key.plain + " " + tier, Kind: ExtraDear}
		}
	}
	return nil
}

// several sees what has the model make more than one answer, or tokens beyond the bound of the answer.
func several(v value) *Extra {
	if v.Depth != 1 && v.Owner.folded != "generationconfig" {
		return nil
	}
	switch v.Key.folded {
	case "n", "bestof", "candidatecount", "numreturnsequences", "numgenerations", "numbeams", "beamwidth", "usebeamsearch":
		if v.Kind == 'n' || v.Kind == 'f' || v.Kind != '"' && isOne(v.Raw) {
			return nil
		}
	case "prediction": // what of it is wrong is paid as output
		if v.Kind == 'n' {
			return nil
		}
	default:
		return nil
	}
	return &Extra{Name: v.Key.plain, Kind: ExtraMany}
}

// isOne reports whether a plain value is the number one.
func isOne(raw []byte) bool {
	f, err := strconv.ParseFloat(string(raw[:min(len(raw), 32)]), 64)
	return err == nil && f == 1 && len(raw) <= 32
}
