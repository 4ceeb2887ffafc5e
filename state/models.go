package state

// Models are the models that people can choose with the command `model`.
type Models struct {
	// Offers reports whether a model can be chosen.
	Offers func(name string) bool
	// Names lists the models and patterns as people would write them.
	Names []string
}
