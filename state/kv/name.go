package kv

import "context"

// nameKey is the context key of an update's name.
type nameKey struct{}

// Named returns a context whose updates have a name. A name changes nothing: it is for whoever
// stands between a caller and its DB, such as a test that fails one update of each kind.
func Named(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

// Name returns the name of the update that ctx was made for, or "".
func Name(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
