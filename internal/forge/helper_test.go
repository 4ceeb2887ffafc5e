package forge_test

// m is a JSON object.
type m = map[string]any
