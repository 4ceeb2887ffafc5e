package changeset_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// A runner encodes the commits of a run; errand decodes and validates them.
func ExampleDecode() {
	content := []byte("Hello, world\n")
	work := &changeset.Changeset{
		Base: strings.Repeat("0a", 20),
		Commits: []changeset.Commit{{
			ID: strings.Repeat("1b", 20), Parents: []string{strings.Repeat("0a", 20)}, Tree: strings.Repeat("2c", 20), Message: "Greet the world\n",
			Changes: []changeset.Change{{Path: "greeting.txt", Mode: changeset.ModeFile, Blob: changeset.BlobID(content)}},
		}},
		Blobs: map[string][]byte{changeset.BlobID(content): content},
	}
	var wire bytes.Buffer
	if err := changeset.Encode(&wire, work); err != nil {
		fmt.Println(err)
		return
	}
	got, err := changeset.Decode(&wire, changeset.DefaultLimits())
	if err != nil {
		fmt.Println(err)
		return
	}
	stats := got.Stats()
	fmt.Printf("%d commit, %d path added, %d bytes: %s\n", stats.Commits, stats.Added, stats.Bytes, got.Commits[0].Changes[0].Path)
	// Output: 1 commit, 1 path added, 13 bytes: greeting.txt
}

// A path that leads into git's own directory is refused under every spelling.
func ExampleCheckPath() {
	fmt.Println(changeset.CheckPath("cmd/main.go", 4096))
	fmt.Println(changeset.CheckPath("lib/.GIT /config", 4096))
	// Output:
	// <nil>
	// leads into a .git directory
}

func ExampleMergePath() {
	merged, clean := changeset.MergePath("old", "old", "theirs")
	fmt.Println(merged, clean)
	merged, clean = changeset.MergePath("old", "ours", "theirs")
	fmt.Println(merged, clean)
	// Output:
	// theirs true
	// theirs false
}
