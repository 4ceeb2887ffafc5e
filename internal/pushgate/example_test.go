package pushgate_test

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/internal/secretscan"
)

// A changeset that edits a CI workflow is refused, because workflows are protected by default.
func ExampleJudge() {
	base, content := strings.Repeat("0a", 20), []byte("on: push\n")
	work := &changeset.Changeset{
		Base: base,
		Commits: []changeset.Commit{{
			ID: strings.Repeat("1b", 20), Parents: []string{base}, Tree: strings.Repeat("2c", 20), Message: "Run the tests\n",
			Changes: []changeset.Change{{Path: ".github/workflows/ci.yml", Mode: changeset.ModeFile, Blob: changeset.BlobID(content)}},
		}},
		Blobs: map[string][]byte{changeset.BlobID(content): content},
	}
	for _, r := range pushgate.Judge(work, pushgate.Policy{Scanner: secretscan.New(nil)}) {
		fmt.Printf("%s: %s: %s\n", r.Rule, r.Path, r.Detail)
	}
	// Output: protected-paths: .github/workflows/ci.yml: the path is protected by `.github/workflows/**`
}

// Only the task's own issue may be closed, and nobody is mentioned.
func ExampleSafeMessage() {
	home := pushgate.Home{Owner: "octo", Name: "greeter", Issue: 7}
	fmt.Println(pushgate.SafeMessage("Greet @ada\n\nFixes #7, closes #8 [skip ci]\n", home))
	// Output:
	// Greet @ ada
	//
	// Fixes #7, see #8 (skip ci)
}
