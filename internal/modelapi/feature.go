package modelapi

import "strconv"

// A Feature is a parameter of a call that requests more than one answer of the named model at its standard price.
type Feature struct {
	// Name is its name in the body, which was written on a VM.
	Name string
	Kind FeatureKind
}

// FeatureKind is the reason why agents may not use a Feature.
type FeatureKind int

// The kinds.
const (
	// FeatureNetwork: the provider would reach other hosts for the agent, or run its own tools. Otherwise a VM could
	// read from and send data to hosts that it cannot reach itself.
	FeatureNetwork FeatureKind = iota + 1
	// FeatureStored: it refers to content in the provider's account, which may belong to anyone.
	FeatureStored
	// FeatureDeferred: the answer would come in another response, and not be counted.
	FeatureDeferred
	// FeatureSurcharge: it costs more than the model's standard price.
	FeatureSurcharge
	// FeatureMultiple: the model would generate more than one answer.
	FeatureMultiple
	// FeatureAmbiguous: it limits the cost, and different readers could read different limits.
	FeatureAmbiguous
)

// FindFeature returns the first feature that a call's body requests, or nil. Those of the kind FeatureNetwork only
// count if network is false. The texts of a conversation and the arguments and results of tools are not searched. The
// body is valid JSON.
func (a API) FindFeature(body []byte, network bool) *Feature {
	var found *Feature
	walk(body, func(v value) bool {
		if found != nil || v.Kind == '"' && isText(v.Key.plain) && v.Owner.folded != "tools" {
			return false // a text
		}
		for _, detect := range []func(value) *Feature{a.accountFeature, a.hostedTool, a.contentAddress, multipleAnswers} {
			if e := detect(v); e != nil && (e.Kind != FeatureNetwork || !network) {
				found = e
				return false
			}
		}
		return !a.isFreeForm(v.Key.plain)
	})
	return found
}

// accountFeature detects references to content in the account, deferred answers and surcharges.
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
	if v.Depth != 1 || v.Kind == 'n' || v.Kind == '[' { // the values of a list follow
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

// multipleAnswers detects requests for more than one answer, or for tokens beyond the output limit.
func multipleAnswers(v value) *Feature {
	if v.Depth != 1 && v.Owner.folded != "generationconfig" {
		return nil
	}
	switch v.Key.folded {
	case "n", "bestof", "candidatecount", "numreturnsequences", "numgenerations", "numbeams", "beamwidth", "usebeamsearch":
		if v.Kind == 'n' || v.Kind == 'f' || v.Kind != '"' && isOne(v.Raw) {
			return nil
		}
	case "prediction": // wrong parts of it are charged as output
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
