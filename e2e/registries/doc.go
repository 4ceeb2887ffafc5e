// Package registries tries real package managers against private registries behind errand's proxy, with the environment of a run. It has
// only tests.
//
// Start with TestPackageManagers.
package registries
