package admin_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestContrast checks that text in both color schemes has the contrast that WCAG requires, 4.5 to 1.
func TestContrast(t *testing.T) {
	t.Parallel()
	css, err := os.ReadFile("pages/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(css), "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("the style has no dark scheme")
	}
	dark, _, _ = strings.Cut(dark, "\n}\n")
	pairs := map[string][]string{
		"text": {"bg", "panel", "code", "calm-bg"}, "dim": {"bg", "panel", "calm-bg"}, "link": {"bg", "panel"}, "busy": {"busy-bg", "panel"},
		"people": {"people-bg"}, "good": {"good-bg", "panel"}, "warn": {"warn-bg"}, "bad": {"bad-bg", "panel"}, "calm": {"calm-bg"},
	}
	for scheme, text := range map[string]string{"light": light, "dark": dark} {
		colors := colors(t, text)
		for front, backs := range pairs {
			for _, back := range backs {
				if c := contrast(colors[front], colors[back]); c < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", scheme, front, back, c)
				}
			}
		}
	}
}

// colors returns the luminance of a scheme's variables.
func colors(t *testing.T, css string) map[string]float64 {
	t.Helper()
	list := map[string]float64{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{3,6});`).FindAllStringSubmatch(css, -1) {
		hex := m[2]
		if len(hex) == 3 {
			hex = strings.Repeat(hex[:1], 2) + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:], 2)
		}
		rgb, err := strconv.ParseUint(hex, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		list[m[1]] = 0.2126*linear(rgb>>16) + 0.7152*linear(rgb>>8) + 0.0722*linear(rgb)
	}
	if len(list) < 20 {
		t.Fatalf("got only %d colors", len(list))
	}
	return list
}

func linear(channel uint64) float64 {
	v := float64(channel&0xff) / 255
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }
