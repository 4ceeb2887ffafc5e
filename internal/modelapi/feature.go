package modelapi

import "strconv"

// Feature is something that a call's body asks of the provider beside an answer of the model that it names.
type Feature struct {
	// Name is how the body calls it. It was written on a VM.
	Name string
	Kind FeatureKind
}

// FeatureKind is why agents do not get an Extra.
type FeatureKind int

// The kinds.
const (
	// FeatureNetwork: the provider would reach other hosts for the agent, or run a tool of its own. What a VM may not
	// reach by itself it could else have fetched, or told.
	FeatureNetwork FeatureKind = iota + 1
	// FeatureStored: it refers to what is stored in the provider's account, which may be anybody's.
	FeatureStored
	// FeatureDeferred: the answer would come by another request, and not be counted.
	FeatureDeferred
	// FeatureSurcharge: it costs more than the model's price says.
	FeatureSurcharge
	// FeatureMultiple: it has the model make more than one answer.
	FeatureMultiple
	// FeatureAmbiguous: it bounds the cost, and two readers of the body may read two bounds.
	FeatureAmbiguous
)

// FindFeature returns the first that a call's body asks for, nil if there is none; of the kind ExtraReach only if reach is
// not allowed. What is merely said in a conversation is none, nor is what programs hand to tools and get from them. The
// body is valid JSON.
func (a API) FindFeature(body []byte, reach bool) *Feature {
	var found *Feature
	walk(body, func(v value) bool {
		if found != nil || v.Kind == '"' && isText(v.Key.plain) && v.Owner.folded != "tools" {
			return false // of a string there is nothing to go into
		}
		for _, look := range []func(value) *Feature{a.accountFeature, a.hostedTool, a.contentAddress, multipleAnswers} {
			if e := look(v); e != nil && (e.Kind != FeatureNetwork || !reach) {
				found = e
				return false
			}
		}
		return !a.isFreeForm(v.Key.plain)
	})
	return found
}

// accountFeature sees what refers to the account, and how dearly and when it shall be answered.
func (a API) accountFeature(v value) *Feature {
	key := v.Key.folded
	if v.Kind == '"' && len(v.Raw) > 0 {
		switch {
		case key == "fileid" || key == "fileids":
			return &Feature{Name: v.Key.plain, Kind: FeatureStored}
		case a == OpenAI && key == "type" && v.text() == "item_reference":
			return &Feature{Name: "item_reference", Kind: FeatureStored}
		}
	}
	if v.Depth != 1 || v.Kind == 'n' || v.Kind == '[' { // an empty list is none; of others each value comes
		return nil
	}
	switch key {
	case "previousresponseid", "conversation", "prompt", "cachedcontent", "container":
		return &Feature{Name: v.Key.plain, Kind: FeatureStored}
	case "background":
		if v.Kind != 'f' {
			return &Feature{Name: v.Key.plain, Kind: FeatureDeferred}
		}
	case "servicetier", "speed", "inferencegeo":
		if v.Kind != '"' {
			return &Feature{Name: v.Key.plain, Kind: FeatureSurcharge}
		}
		switch tier := v.text(); tier {
		case "", "auto", "default", "standard", "standard_only", "flex", "global":
		default:
			return &Feature{Name: v.Key.plain + " " + tier, Kind: FeatureSurcharge}
		}
	}
	return nil
}

// multipleAnswers sees what has the model make more than one answer, or tokens beyond the bound of the answer.
func multipleAnswers(v value) *Feature {
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
	return &Feature{Name: v.Key.plain, Kind: FeatureMultiple}
}

// isOne reports whether a plain value is the number one.
func isOne(raw []byte) bool {
	f, err := strconv.ParseFloat(string(raw[:min(len(raw), 32)]), 64)
	return err == nil && f == 1 && len(raw) <= 32
}
