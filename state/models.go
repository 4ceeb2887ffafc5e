package state

// Models are the models that people may choose with the command `model`.
type Models struct {
	// Offers reports whether this is one.
	Offers func(name string) bool
	// Names lists them, patterns among them, as people would write them.
	Names []string
}

// StatusContextOverflow is the status of a run whose conversation became too long for its model.
const StatusContextOverflow = "context_overflow"
