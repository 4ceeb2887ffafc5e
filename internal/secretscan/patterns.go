package secretscan

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
)

// Patterns is the compiled pattern library: the rules of gitleaks and additional rules of this package. It is immutable
// and safe for concurrent use.
type Patterns struct {
	rules      []rule
	allow      []*config.Allowlist
	prefilter  *ahocorasick.Trie
	byKeyword  map[string][]int // keyword → indexes into rules
	unfiltered []int            // rules without keywords, which are always tried
	cut        []cutRule        // rules for parts of secrets in truncated texts
}

type rule struct {
	id      string
	regex   *regexp.Regexp
	path    *regexp.Regexp
	group   int
	entropy float64
	allow   []*config.Allowlist
	// strict marks a rule of this package: no allow-list of the library weakens it.
	strict bool
}

// cutRule is a rule for truncated texts. It applies if the text contains one of its keywords.
type cutRule struct {
	rule
	keywords []string
}

// ownRule is a rule that the library lacks or has in too narrow a form.
type ownRule struct {
	id, regex string
	keywords  []string
	entropy   float64 // minimum entropy of a match in bits per character, exclusive
}

// ownRules returns token forms that are never published, regardless of allow-lists. Since 2026, GitHub's installation
// tokens have several hundred characters, with dots. A password in a URL must look random; otherwise
// postgres:postgres@localhost would match.
func ownRules() []ownRule {
	return []ownRule{
		{"github-token", `gh[pousr]_[A-Za-z0-9._-]{36,}`, []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, 0},
		{"github-fine-grained-token", `github_pat_[A-Za-z0-9_]{22,}`, []string{"github_pat_"}, 0},
		{"errand-token", `errand-[0-9a-f]{64}`, []string{"errand-"}, 0}, // of a run or a VM, for its tether
		{"anthropic-token", `sk-ant-[A-Za-z0-9_-]{20,}`, []string{"sk-ant-"}, 0},
		{"openai-token", `\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}`, []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}, 0},
		{"url-password", `\b[a-z][a-z0-9+.-]{1,30}://[^\s/:@"'<>]{0,100}:([^\s/:@"'<>$\{\[]{8,300})@`, []string{"://"}, 3.3},
		{"private-key-block", `-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{20,}?-----END [A-Z ]{0,40}PRIVATE KEY-----`, []string{"private key"}, 0},
	}
}

// cutRules returns patterns for parts of secrets at the edges of a truncated text. A line of a key has at least 40
// characters and ends in a newline or in the two characters by which JSON escapes one.
func cutRules() []ownRule {
	const line = `[A-Za-z0-9+/=]{40,}`
	const end = `(?:\\r|\\n|\s)+`
	const label = `[A-Z ]{0,40}PRIVATE KEY-----`
	return []ownRule{
		{id: "github-token", regex: `gh[pousr]_[A-Za-z0-9._-]{8,}\z|github_pat_[A-Za-z0-9_]{8,}\z`, keywords: []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}},
		{id: "errand-token", regex: `errand-[0-9a-f]{16,}\z`, keywords: []string{"errand-"}},
		{id: "anthropic-token", regex: `sk-ant-[A-Za-z0-9_-]{8,}\z`, keywords: []string{"sk-ant-"}},
		{id: "openai-token", regex: `\bsk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{8,}\z`, keywords: []string{"sk-"}},
		{id: "private-key-block", regex: `-----BEGIN ` + label + end + line + `[\s\S]*?(?:-----END ` + label + `|\z)`, keywords: []string{"-----BEGIN "}},
		{id: "private-key-block", regex: `(?:[A-Za-z0-9+/=]+` + end + `)?(?:` + line + end + `)*[A-Za-z0-9+/=]*` + end + `-----END ` + label, keywords: []string{"-----END "}},
	}
}

// LoadPatterns compiles the library. It takes tens of milliseconds and some megabytes, so load it once at startup and
// share the result.
func LoadPatterns() (*Patterns, error) {
	reader := viper.New()
	reader.SetConfigType("toml")
	if err := reader.ReadConfig(strings.NewReader(config.DefaultConfig)); err != nil {
		return nil, fmt.Errorf("read secret patterns: %w", err)
	}
	var raw config.ViperConfig
	if err := reader.Unmarshal(&raw); err != nil {
		return nil, fmt.Errorf("decode secret patterns: %w", err)
	}
	library, err := raw.Translate()
	if err != nil {
		return nil, fmt.Errorf("compile secret patterns: %w", err)
	}
	return compile(library)
}

func compile(library config.Config) (*Patterns, error) {
	p := &Patterns{byKeyword: map[string][]int{}, allow: library.Allowlists}
	for _, own := range ownRules() {
		regex, err := regexp.Compile(own.regex)
		if err != nil {
			return nil, fmt.Errorf("compile secret pattern %s: %w", own.id, err)
		}
		group := min(regex.NumSubexp(), 1)
		p.add(rule{id: own.id, regex: regex, group: group, entropy: own.entropy, strict: true}, own.keywords)
	}
	for _, own := range cutRules() {
		regex, err := regexp.Compile(own.regex)
		if err != nil {
			return nil, fmt.Errorf("compile secret pattern %s: %w", own.id, err)
		}
		p.cut = append(p.cut, cutRule{rule{id: own.id, regex: regex, strict: true}, own.keywords})
	}
	for _, r := range library.GetOrderedRules() {
		if r.Regex == nil || r.SkipReport || len(r.RequiredRules) > 0 {
			continue
		}
		p.add(rule{id: r.RuleID, regex: r.Regex, path: r.Path, group: r.SecretGroup, entropy: r.Entropy, allow: r.Allowlists}, r.Keywords)
	}
	for _, list := range p.allow {
		if err := list.Validate(); err != nil {
			return nil, fmt.Errorf("compile allow-list of secret patterns: %w", err)
		}
	}
	words := make([]string, 0, len(p.byKeyword))
	for word := range p.byKeyword {
		words = append(words, word)
	}
	p.prefilter = ahocorasick.NewTrieBuilder().AddStrings(words).Build()
	return p, nil
}

func (p *Patterns) add(r rule, keywords []string) {
	index := len(p.rules)
	p.rules = append(p.rules, r)
	if len(keywords) == 0 {
		p.unfiltered = append(p.unfiltered, index)
	}
	for _, word := range keywords {
		word = strings.ToLower(word)
		p.byKeyword[word] = append(p.byKeyword[word], index)
	}
}

// find returns the findings in the order of the rules.
func (p *Patterns) find(path, text string) []Finding {
	libraryToo := true
	for _, list := range p.allow {
		if list.PathAllowed(path) {
			libraryToo = false
		}
	}
	var found []Finding
	for index, wanted := range p.candidates(text) {
		if r := p.rules[index]; wanted && (libraryToo || r.strict) {
			found = append(found, p.findRule(r, path, text)...)
		}
	}
	return found
}

// candidates reports, per rule, whether the text contains one of its keywords.
func (p *Patterns) candidates(text string) []bool {
	wanted := make([]bool, len(p.rules))
	for _, index := range p.unfiltered {
		wanted[index] = true
	}
	for _, m := range p.prefilter.MatchString(strings.ToLower(text)) {
		for _, index := range p.byKeyword[m.MatchString()] {
			wanted[index] = true
		}
	}
	return wanted
}

func (p *Patterns) findRule(r rule, path, text string) []Finding {
	if r.path != nil && !r.path.MatchString(path) {
		return nil
	}
	var found []Finding
	for _, at := range r.regex.FindAllStringSubmatchIndex(text, -1) {
		start, end := secretRange(at, r.group)
		secret := text[start:end]
		if secret == "" || r.entropy > 0 && entropy(secret) <= r.entropy {
			continue
		}
		if !r.strict {
			hit := hit{path: path, secret: secret, match: text[at[0]:at[1]], line: lineAround(text, at[0], at[1])}
			if hit.allowedBy(p.allow) || hit.allowedBy(r.allow) {
				continue
			}
		}
		found = append(found, Finding{Rule: r.id, Start: start, End: end})
	}
	return found
}

// secretRange returns the range of the group that holds the secret: the rule's group if it matched, else the first
// group that matched, else the whole match.
func secretRange(at []int, group int) (start, end int) {
	if group > 0 && 2*group+1 < len(at) && at[2*group] >= 0 {
		return at[2*group], at[2*group+1]
	}
	for i := 2; i+1 < len(at); i += 2 {
		if at[i] >= 0 && at[i+1] > at[i] {
			return at[i], at[i+1]
		}
	}
	return at[0], at[1]
}

func lineAround(text string, start, end int) string {
	from := strings.LastIndexByte(text[:start], '\n') + 1
	to := strings.IndexByte(text[end:], '\n')
	if to < 0 {
		return text[from:]
	}
	return text[from : end+to]
}

// entropy returns the text's entropy in bits per character.
func entropy(text string) float64 {
	counts := map[rune]int{}
	total := 0
	for _, c := range text {
		counts[c]++
		total++
	}
	var bits float64
	for _, n := range counts {
		share := float64(n) / float64(total)
		bits -= share * math.Log2(share)
	}
	return bits
}
