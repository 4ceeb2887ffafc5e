package secretscan_test

import (
	"encoding/base64"
	"fmt"

	"github.com/errand-bot/errand/internal/secretscan"
)

// Known values are found in plain text and in common encodings.
func ExampleScanner_Find() {
	scanner := secretscan.New(nil, "correct-horse-battery")
	text := "first line\npassword: " + base64.StdEncoding.EncodeToString([]byte("correct-horse-battery")) + "\n"
	for _, f := range scanner.Find(text) {
		fmt.Printf("%s on line %d\n", f.Rule, f.Line(text))
	}
	// Output: known-value on line 2
}

// The pattern library recognizes tokens by their form.
func ExampleLoadPatterns() {
	patterns, err := secretscan.LoadPatterns()
	if err != nil {
		fmt.Println(err)
		return
	}
	scanner := secretscan.New(patterns)
	text := "clone with https://x:" + "ghs_" + "aB3dE6gH9aB3dE6gH9aB3dE6gH9aB3dE6gH9" + "@github.com/octo/greeter"
	for _, f := range scanner.Find(text) {
		fmt.Println(f.Rule, f.Start, f.End)
	}
	// Output: github-token 21 61
}
