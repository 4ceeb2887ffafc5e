package kv

import "context"

// nameKey is the context key of an update's name.
type nameKey struct{}

// Named returns a context whose updates have a name. The name does not affect the update; wrappers of a DB can use it,
// for example tests that fail one update of each kind.
func Named(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, nameKey{}, name)
}

// Name returns the name of the update with this context, or "".
func Name(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
