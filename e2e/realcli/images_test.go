package realcli

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// TestHeavyImages lets each real program look at the images of an issue, with the tool and the rights that it has in every run:
// each image reaches the model. The program may not change them.
func TestHeavyImages(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	var seen atomic.Int64
	t.Cleanup(func() {
		if n := seen.Load(); n > 0 {
			t.Logf("PROOF: real programs: %d images reached the model", n)
		}
	})
	all := programs()
	all["gemini"] = real{}
	for name, p := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, path := p, ""
			if name == "gemini" {
				path, p = geminiProgram(t)
			} else {
				path = program(t, name)
			}
			l := startLife(t, path, "turns.yaml", func(c *demo.Config) {
				c.Adapter, c.Model = p.adapter, p.model
				c.Files = map[string]string{"slug.go": "package slug\n", ".errand.yml": "plan: none\n"}
			})
			images := testImages(t)
			check(t, l.Model.SetScript(lookAt(name, images)))
			body := "It looks wrong:\n"
			for kind, content := range images {
				address, err := l.GitHub.As(demo.Maintainer).Upload(demo.Full, "image."+kind, content)
				check(t, err)
				body += fmt.Sprintf("\n![%s](%s)\n", kind, address)
			}
			issue := l.assign("Look at it", body)
			l.until(issue, "the pull request", func(t *state.Task) bool { return t.Phase == state.PhasePROpen })
			var requests strings.Builder
			for _, r := range l.Model.Requests() {
				requests.Write(r.Body)
			}
			for kind, content := range images {
				if !showsImage(requests.String(), content) {
					t.Errorf("no request to the model contains the %s image", kind)
					continue
				}
				seen.Add(1)
			}
			if !strings.Contains(requests.String(), "UNCHANGED") {
				t.Error("the program changed an image")
			}
		})
	}
}

// testImages returns an image of each kind that agents get, by the ending of its name.
func testImages(t *testing.T) map[string][]byte {
	t.Helper()
	im := image.NewPaletted(image.Rect(0, 0, 64, 64), color.Palette{color.White, color.Black, color.RGBA{R: 200, A: 255}})
	for i := range im.Pix {
		im.Pix[i] = uint8(i * i / 7 % 3)
	}
	out := map[string][]byte{}
	for kind, encode := range map[string]func(b *bytes.Buffer) error{
		"png": func(b *bytes.Buffer) error { return png.Encode(b, im) },
		"jpg": func(b *bytes.Buffer) error { return jpeg.Encode(b, im, nil) },
		"gif": func(b *bytes.Buffer) error { return gif.Encode(b, im, nil) },
		"webp": func(b *bytes.Buffer) error {
			const onePixel = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
			_, err := b.ReadFrom(base64.NewDecoder(base64.StdEncoding, strings.NewReader(onePixel)))
			return err
		},
	} {
		var b bytes.Buffer
		check(t, encode(&b))
		out[kind] = b.Bytes()
	}
	return out
}

var base64Text = regexp.MustCompile(`[A-Za-z0-9+/]{40,}={0,2}`)

// showsImage reports whether requests contain the bytes of an image, or another one with the same pixels: Codex sends GIF images
// as PNG.
func showsImage(requests string, content []byte) bool {
	if strings.Contains(requests, base64.StdEncoding.EncodeToString(content)) {
		return true
	}
	want, _, err := image.Decode(bytes.NewReader(content))
	if err != nil {
		return false
	}
	for _, text := range base64Text.FindAllString(requests, -1) {
		got, _, err := image.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
		if err == nil && got.Bounds() == want.Bounds() && slices.Equal(pixels(got), pixels(want)) {
			return true
		}
	}
	return false
}

func pixels(im image.Image) (all []color.RGBA64) {
	for y := range im.Bounds().Dy() {
		for x := range im.Bounds().Dx() {
			r, g, b, a := im.At(x, y).RGBA()
			all = append(all, color.RGBA64{R: uint16(r), G: uint16(g), B: uint16(b), A: uint16(a)})
		}
	}
	return all
}

// lookAt has a program open each image by its tool for that, try to change one, and finish.
func lookAt(program string, images map[string][]byte) simmodel.Script {
	find := func(kind string) string { return `{{find "\"(/[^\"]+/attachments/[^\"]+\\.` + kind + `)\"" .Prompt}}` }
	var turns []simmodel.Turn
	for kind := range images {
		call := simmodel.Call{Name: "Read", Input: map[string]any{"file_path": find(kind)}}
		if program == "codex" {
			call = simmodel.Call{Name: "view_image", Input: map[string]any{"path": find(kind)}}
		}
		turns = append(turns, simmodel.Turn{Tools: []simmodel.Call{call}})
	}
	turns = append(turns,
		simmodel.Turn{Bash: []string{"sha256sum ../attachments/* > before.txt"}},
		simmodel.Turn{Tools: []simmodel.Call{{Name: "Write", Input: map[string]any{"file_path": find("png"), "content": "changed"}}}},
		simmodel.Turn{Bash: []string{"sha256sum ../attachments/* | cmp - before.txt && echo UN''CHANGED; git add -A && git commit -qm Look"}},
		simmodel.Turn{Text: "Done.\n\n```errand\n{\"outcome\":\"done\",\"title\":\"Look at it\",\"summary\":\"Looked.\"}\n```\n"},
	)
	return simmodel.Script{Rules: []simmodel.Rule{{Name: "looks", Step: "implement", Turns: turns}}}
}
