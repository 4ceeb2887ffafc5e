package publish_test

// m is a JSON object.
type m = map[string]any
