package pushgate

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// foldName returns a spelling that is equal for two names if some file system treats them as equal: it ignores case,
// Unicode form and the characters that HFS+ ignores in comparisons.
func foldName(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(removeInvisible(name))))
}

// canonical returns the path that a file system or a program with lenient name matching could resolve p to. Beyond
// [fold], it ignores the width of characters, treats a backslash as a separator, and drops the parts of a name that
// Windows drops: trailing dots and spaces, and the name of a stream.
func canonical(p string) string {
	parts := strings.Split(strings.ReplaceAll(looseForm(p), `\`, "/"), "/")
	for i, name := range parts {
		name, _, _ = strings.Cut(name, ":")
		if trimmed := strings.TrimRight(name, " ."); trimmed != "" {
			name = trimmed
		}
		parts[i] = name
	}
	return strings.Join(parts, "/")
}

// looseForm normalizes single characters as [canonical] does, so it can be applied to patterns, too.
func looseForm(s string) string {
	s = removeInvisible(norm.NFKC.String(removeInvisible(s)))
	s = norm.NFKC.String(cases.Fold().String(s))
	return strings.ReplaceAll(s, "ı", "i") // the Turkish dotless i, whose capital is the ASCII I
}

// removeInvisible removes characters that are not displayed, including joiners and variation selectors.
func removeInvisible(s string) string {
	return strings.Map(func(r rune) rune {
		if ignorable(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// ignorable reports whether Unicode allows programs to ignore the character.
func ignorable(r rune) bool {
	switch {
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return true
	case r == 0x034F || r >= 0x180B && r <= 0x180F || r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return false
}

// shortName matches the 8.3 names that Windows generates for longer names: HUSKY~1 stands for .husky.
var shortName = regexp.MustCompile(`^[^.~]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?$`)

func isShortName(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	return len([]rune(stem)) <= 8 && shortName.MatchString(name)
}

// isGitDir reports whether some file system resolves a part of the name to .git.
func isGitDir(name string) bool {
	for part := range strings.SplitSeq(canonical(name), "/") {
		if part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}
