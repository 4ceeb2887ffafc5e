//go:build !linux

package proc

func offerToOOM(int) {}
