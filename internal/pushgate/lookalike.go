package pushgate

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// fold returns the spelling that two names share if some file system takes them for the same: it ignores case,
// Unicode form and the characters that HFS+ leaves out of a comparison.
func fold(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(visible(name))))
}

// canonical returns the path that p could be taken for, by a file system or a program that reads names loosely.
// Beyond fold it ignores the width of characters, reads a backslash as a separator, and drops what Windows drops
// of a name: dots and spaces at its end, and the name of a stream.
func canonical(p string) string {
	parts := strings.Split(strings.ReplaceAll(loose(p), `\`, "/"), "/")
	for i, name := range parts {
		name, _, _ = strings.Cut(name, ":")
		if trimmed := strings.TrimRight(name, " ."); trimmed != "" {
			name = trimmed
		}
		parts[i] = name
	}
	return strings.Join(parts, "/")
}

// loose is what canonical does to single characters, so that it may be applied to a pattern, too.
func loose(s string) string {
	s = visible(norm.NFKC.String(visible(s)))
	s = norm.NFKC.String(cases.Fold().String(s))
	return strings.ReplaceAll(s, "ı", "i") // Turkish, whose capital is the ASCII one
}

// visible removes the characters that are not shown, joiners and variation selectors among them.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if ignorable(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// ignorable reports whether a character is one that Unicode lets programs ignore.
func ignorable(r rune) bool {
	switch {
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return true
	case r == 0x034F || r >= 0x180B && r <= 0x180F || r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return false
}

// shortName matches the names of at most eight characters, and three more after a dot, that Windows makes up for
// longer ones: HUSKY~1 is .husky.
var shortName = regexp.MustCompile(`^[^.~]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?$`)

func isShortName(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	return len([]rune(stem)) <= 8 && shortName.MatchString(name)
}

// isGitDir knows the spellings under which some file system takes a name for .git.
func isGitDir(name string) bool {
	for part := range strings.SplitSeq(canonical(name), "/") {
		if part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}
