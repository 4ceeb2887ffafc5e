package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	tree := fstest.MapFS{
		"a/x_test.go":          file("package a\n\nfunc FuzzOne(f *testing.F) {\n}\n\nfunc FuzzTwo(f *testing.F) {}\n"),
		"a/x.go":               file("package a\n\nfunc FuzzNot(f *testing.F) {}\n"),
		"a/y_test.go":          file("package a\n\n// func FuzzComment(f *testing.F) {}\nfunc FuzzHelper(x int) {}\n"),
		"b/testdata/z_test.go": file("func FuzzData(f *testing.F) {}\n"),
		".git/z_test.go":       file("func FuzzHidden(f *testing.F) {}\n"),
	}
	got, err := targets(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := []target{{"a", "FuzzOne"}, {"a", "FuzzTwo"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{})); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}
