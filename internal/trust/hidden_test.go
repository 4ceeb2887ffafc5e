package trust

import (
	"strings"
	"testing"
)

// TestHiddenWordsAreRemoved: a word that GitHub does not show is removed, whatever the surrounding characters and
// however a drawing hides it.
func TestHiddenWordsAreRemoved(t *testing.T) {
	t.Parallel()
	blank := func(s string) string { return "```\nx" + strings.Repeat(s, 300) + "HIDDEN\n```" }
	mermaid := func(s string) string { return "```mermaid\ngraph TD\nA[HIDDEN]\n" + s + "\n```" }
	for name, text := range map[string]string{
		"comment behind spaces that do not indent": "\u00a0\u00a0\u00a0\u00a0<!-- HIDDEN -->",
		"comment after ideographic spaces":         "a\n\n\u3000\u3000\u3000\u3000x <!-- HIDDEN -->",
		"comment between fences that are none":     "a\n\n\u00a0```\n<!-- HIDDEN -->\n\u00a0```",
		"fences behind an invisible character":     "a\n\n\u200b```\n<!-- HIDDEN -->\n\u200b```",
		"fences cut by invisible characters":       "``\u200b`\n<!-- HIDDEN -->\n``\u200b`",
		"indented after a line separator":          "a\n\n\u2028    x <!-- HIDDEN -->",
		"fence behind a control character":         "\x00```\n<!-- HIDDEN -->\n```",
		"element behind spaces that do not indent": "a\n\n\u00a0\u00a0\u00a0\u00a0x <b hidden>HIDDEN</b>",
		"language written as an entity":            "```mer&#109;aid\ngraph TD\n%% HIDDEN\nA-->B\n```",
		"map as an entity":                         "~~~geo&#x6a;son a=b\n{\"HIDDEN\":1}\n~~~",
		"map in a list in a quote":                 "> - ```geojson\n>   {\"HIDDEN\":1}\n>   ```",
		"drawn without color":                      mermaid("style A color:#0000"),
		"color that is worked out":                 mermaid("style A color:hsl(0,0%,100%)"),
		"share of opacity":                         mermaid("style A opacity:1%"),
		"shrunk to nothing":                        mermaid("style A transform:scale(0)"),
		"element that shows nothing":               "```mermaid\ngraph TD\nA[\"<template>HIDDEN</template>\"]\n```",
		"address of a picture in a diagram":        "```mermaid\nflowchart TD\nA@{ img: \"http://x/HIDDEN\", h: 1 }\n```",
		"white in hexadecimal":                     "$\\color[HTML]{FFFFFF}\\text{HIDDEN}$",
		"white as a function":                      "$\\color{rgb(255,255,255)}\\text{HIDDEN}$",
		"the dark background's color":              "$\\color{#0d1117}\\text{HIDDEN}$",
		"the color around it":                      "$\\colorbox{red}{\\color{red}HIDDEN}$",
		"one of four choices":                      "$\\mathchoice{x}{HIDDEN}{x}{x}$",
		"size of a token":                          "$\\mmlToken{mi}[mathsize=\"0px\"]{HIDDEN}$",
		"far below":                                "$x\\\\[500em] HIDDEN$",
		"formula over an empty line":               "$$\nx\n\n\\phantom{HIDDEN}\n$$",
		"far right behind blank Braille patterns":  blank("\u2800"),
		"far right behind Hangul fillers":          blank("\u3164"),
		"far right behind wide spaces":             blank("\u3000"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, report := Strip(text)
			if strings.Contains(out, "HIDDEN") || len(report) == 0 {
				t.Errorf("Strip(%.80q) = %.80q, %v", text, out, report)
			}
			if again, _ := Strip(out); again != out {
				t.Errorf("not stable: %q, then %q", out, again)
			}
		})
	}
}

// TestShownWordsStay: text that people can read is not changed.
func TestShownWordsStay(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"comment in code":                      "```html\n<!-- SHOWN -->\n```",
		"comment in indented code":             "a\n\n    <!-- SHOWN -->",
		"opacity that can be read":             "```mermaid\ngraph TD\nA[SHOWN]\nstyle A opacity:0.8\n```",
		"class and interface of a diagram":     "```mermaid\nclassDiagram\nclass SHOWN {\n<<interface>>\n}\n```",
		"color that can be read":               "```mermaid\ngraph TD\nA[SHOWN]\nclassDef a fill:#f9f,stroke:#333,color:#000\n```",
		"line break in a label":                "```mermaid\ngraph TD\nA[\"x<br/>SHOWN\"]\n```",
		"colored formula":                      "$\\color{red}{SHOWN}$ and $\\textcolor{#0969da}{b}$",
		"line of a matrix with some more room": "$$\\begin{matrix} a \\\\[2em] SHOWN \\end{matrix}$$",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, report := Strip(text); out != text {
				t.Errorf("Strip(%q) = %q, %v", text, out, report)
			}
		})
	}
}
