package pushgate

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/secretscan"
)

func TestSymlinks(t *testing.T) {
	t.Parallel()
	one := func(path, target string) func(*builder) {
		return func(b *builder) { b.commit(b.link(path, target)) }
	}
	files := &store{}
	checkRule(t, RuleSymlinks, map[string]ruleCase{
		"in another folder":     {build: one("a/b", "c")},
		"up to the root":        {build: one("a/b/c", "../../README.md")},
		"the root itself":       {build: one("a/b", "..")},
		"to nothing":            {build: one("a", "does/not/exist")},
		"absolute":              {build: one("a", "/etc/passwd"), want: []string{"a: the link's target is absolute"}},
		"absolute on Windows":   {build: one("a", "C:/x"), want: []string{"absolute"}},
		"backslashes":           {build: one("a", `..\..\x`), want: []string{"backslash"}},
		"one too far":           {build: one("a/b", "../../x"), want: []string{"a/b: the link leads out"}},
		"out and back":          {build: one("a", "../repo/x"), want: []string{"leads out"}},
		"down and too far up":   {build: one("a", "x/../../y"), want: []string{"leads out"}},
		"git's directory":       {build: one("a", ".git/config"), want: []string{"git's own"}},
		"git's, in other case":  {build: one("d/a", "../.GIT"), want: []string{"git's own"}},
		"an empty target":       {build: one("a", ""), want: []string{"not a path"}},
		"a zero":                {build: one("a", "x\x00y"), want: []string{"not a path"}},
		"to itself":             {build: one("a", "a"), want: []string{"does not end"}},
		"a ring":                {build: func(b *builder) { b.commit(b.link("a", "b"), b.link("b", "a")) }, want: []string{"a: the link does not end", "b: the link does not end"}},
		"through a linked root": {build: func(b *builder) { b.commit(b.link("deep/er/root", "../.."), b.link("x", "deep/er/root/../y")) }, want: []string{"x: the link leads out"}},
		"through a linked folder": {
			build: func(b *builder) { b.commit(b.link("v", "docs/v2"), b.link("x", "v/index.md")) },
		},
		"through a link of the base": {
			build: one("x", "old/../y"),
			policy: func(p *Policy) {
				p.Base = Tree{"old": files.as(changeset.ModeSymlink, "."), "y": files.entry("y")}
				p.Content = files.get
			},
			want: []string{"x: the link leads out"},
		},
		"an old link that a new one bends": {
			build: one("a", "."),
			policy: func(p *Policy) {
				p.Base = Tree{"old": files.as(changeset.ModeSymlink, "a/../y"), "bad": files.as(changeset.ModeSymlink, "/elsewhere")}
				p.Content = files.get
			},
			want: []string{"old: the link leads out"},
		},
		"gone in the end, still published": {
			build: func(b *builder) { b.commit(b.link("a", "/etc")).commit(gone("a")) },
			want:  []string{"absolute"},
		},
		"old links are not asked for without need": {
			build: one("x", "v/index.md"),
			policy: func(p *Policy) {
				p.Base = Tree{}
				for i := range 5000 {
					p.Base[fmt.Sprintf("links/%04d", i)] = Entry{Mode: changeset.ModeSymlink, Blob: "b"}
				}
				calls := 0
				p.Content = func(string) ([]byte, bool) {
					if calls++; calls > maxBaseLinks {
						panic("asked for too many links")
					}
					return []byte("elsewhere"), true
				}
			},
		},
		"a file that says the same": {build: func(b *builder) { b.commit(b.file("a", "/etc/passwd")) }},
	})
}

func pointer(oid string) string {
	return "version https://git-lfs.github.com/spec/v1\noid sha256:" + oid + "\nsize 12345\n"
}

func TestLFS(t *testing.T) {
	t.Parallel()
	oid := strings.Repeat("ab12", 16)
	one := func(content string) func(*builder) {
		return func(b *builder) { b.commit(b.file("big.bin", content)) }
	}
	checkRule(t, RuleLFS, map[string]ruleCase{
		"no such object":      {build: one(pointer(oid)), want: []string{"big.bin: the LFS object ab12ab12ab12… it refers to"}},
		"an object that is":   {build: one(pointer(oid)), policy: func(p *Policy) { p.LFSObjects = map[changeset.Pointer]bool{{OID: oid, Size: 12345}: true} }},
		"moved from the base": {build: one(pointer(oid)), policy: func(p *Policy) { p.Base = Tree{"old.bin": {Mode: changeset.ModeFile, Blob: blobID(pointer(oid))}} }},
		"a broken id":         {build: one(pointer("xyz")), want: []string{"begins like an LFS pointer but is not one"}},
		"no size":             {build: one(strings.Replace(pointer(oid), "size 12345", "size many", 1)), want: []string{"is not one"}},
		"a huge size":         {build: one(strings.Replace(pointer(oid), "12345", strings.Repeat("9", 30), 1)), want: []string{"is not one"}},
		"a text about it":     {build: one("See " + pointer(oid))},
		"a long document":     {build: one(pointer(oid) + strings.Repeat("x", changeset.MaxPointer))},
		"a link":              {build: func(b *builder) { b.commit(b.link("a", "version https")) }},
		"of another size":     {build: one(pointer(oid)), policy: func(p *Policy) { p.LFSObjects = map[changeset.Pointer]bool{{OID: oid, Size: 1}: true} }, want: []string{"neither on the VM nor at GitHub"}},
		"too large":           {build: one(strings.Replace(pointer(oid), "12345", "99999999", 1)), want: []string{"big.bin: the large file has 95.4 MB, and errand uploads at most 40.0 MB"}},
	})
}

// TestBroughtLargeFiles: included large files are accepted up to the limit and searched for secrets.
func TestBroughtLargeFiles(t *testing.T) {
	t.Parallel()
	brought := func(contents ...string) func(*builder) {
		return func(b *builder) {
			var changes []changeset.Change
			b.cs.LFS = map[string][]byte{}
			for i, content := range contents {
				p, text := changeset.PointerTo([]byte(content))
				b.cs.LFS[p.OID] = []byte(content)
				changes = append(changes, b.file(fmt.Sprintf("%d.bin", i), text))
			}
			b.commit(changes...)
		}
	}
	small := func(p *Policy) { p.MaxLFSBytes = 10 }
	checkRule(t, RuleLFS, map[string]ruleCase{
		"brought":           {build: brought("content")},
		"up to the limit":   {build: brought("12345", "67890"), policy: small},
		"the same twice":    {build: brought("12345678", "12345678"), policy: small},
		"too much together": {build: brought("123456", "12345"), policy: small, want: []string{"0.bin: 0.0 MB of new large files, of which this is the largest"}},
		"one too large":     {build: brought("12345678901", "1234"), policy: small, want: []string{"0.bin: the large file has 0.0 MB"}},
		"cut short": {build: func(b *builder) {
			brought("content")(b)
			for oid := range b.cs.LFS {
				b.cs.LFS[oid] = []byte("cont")
			}
		}, want: []string{"neither on the VM nor at GitHub"}},
	})
	checkRule(t, RuleSecrets, map[string]ruleCase{
		"a secret within": {build: brought("x\ntoken = " + fakeToken() + "\n"), want: []string{"0.bin: line 2 contains text that looks like a secret"}},
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	files := &store{}
	line := "token = " + fakeToken() + "\n"
	withBase := func(path, content string) func(*Policy) {
		return func(p *Policy) {
			p.Base = Tree{path: files.entry(content)}
			p.Content = files.get
		}
	}
	one := func(path, content string) func(*builder) {
		return func(b *builder) { b.commit(b.file(path, content)) }
	}
	base := map[string]func(*Policy){
		"same":    withBase("a.env", line),
		"other":   withBase("a.env", "nothing\n"),
		"renamed": withBase("old.env", line),
	}
	checkRule(t, RuleSecrets, map[string]ruleCase{
		"a token":                  {build: one("a.env", "x\n"+line), want: []string{"a.env: line 2 contains text that looks like a secret (github-token)"}},
		"talk of tokens":           {build: one("a.md", "Set the token in `GITHUB_TOKEN`.\n")},
		"a known value":            {build: one("a.md", "the word is "+knownSecret), want: []string{"line 1 contains text that looks like a secret (known-value)"}},
		"known, in a binary":       {build: one("a.bin", "\x00\x00"+knownSecret), want: []string{"known-value"}},
		"removed later":            {build: func(b *builder) { b.commit(b.file("a.env", line)).commit(b.file("a.env", "x\n")) }, want: []string{"a.env: line 1"}},
		"there before":             {build: one("a.env", "more\n"+line), policy: base["same"]},
		"new in an old file":       {build: one("a.env", "nothing\n"+line), policy: base["other"], want: []string{"a.env: line 2"}},
		"moved with its file":      {build: func(b *builder) { b.commit(gone("old.env"), b.file("new.env", line+"more\n")) }, policy: base["renamed"]},
		"copied as it is":          {build: one("copy.env", line), policy: base["renamed"]},
		"copied with changes":      {build: one("copy.env", line+"more\n"), policy: base["renamed"], want: []string{"copy.env: line 1"}},
		"reported once":            {build: func(b *builder) { b.commit(b.file("a.env", line)).commit(b.file("a.env", line+"more\n")) }, want: []string{"a.env: line 1"}},
		"pattern in a free path":   {build: one("x/testdata/a.env", line), policy: func(p *Policy) { p.Operator.SecretsAllowedIn = []string{"**/testdata/**"} }},
		"known value in free path": {build: one("x/testdata/a.env", knownSecret), policy: func(p *Policy) { p.Operator.SecretsAllowedIn = []string{"**"} }, want: []string{"known-value"}},
		"deleting a file":          {build: func(b *builder) { b.commit(gone("a.env")) }, policy: base["same"]},
		"in a name":                {build: one("a-"+knownSecret, "x"), want: []string{"a-[redacted]: the path's name contains a secret"}},
		"in a link":                {build: func(b *builder) { b.commit(b.link("a", knownSecret)) }, want: []string{"a: line 1"}},
		"no scanner":               {build: one("a", "x"), policy: func(p *Policy) { p.Scanner = nil }, want: []string{"could not be searched"}},
	})
}

// TestSecretsInNames: secrets in names of files are refused like those in content.
func TestSecretsInNames(t *testing.T) {
	t.Parallel()
	one := func(path string) func(*builder) {
		return func(b *builder) { b.commit(b.file(path, "x")) }
	}
	base := func(path string) func(*Policy) {
		return func(p *Policy) { p.Base = Tree{path: {Mode: changeset.ModeFile, Blob: "old"}} }
	}
	allowed := func(operators []string, own ...string) func(*Policy) {
		return func(p *Policy) {
			p.Operator.SecretsAllowedIn = operators
			if len(own) > 0 {
				p.Repository.SecretsAllowedIn = own
			}
		}
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("xx" + knownSecret))
	checkRule(t, RuleSecrets, map[string]ruleCase{
		"of a file":            {build: one("notes/" + fakeToken() + "/a.txt"), want: []string{"notes/[redacted]/a.txt: the path's name contains text that looks like a secret (github-token)"}},
		"of a folder":          {build: one(fakeToken() + "/a.txt"), want: []string{"[redacted]/a.txt: "}},
		"known":                {build: one("a/" + knownSecret + "/b"), want: []string{"a/[redacted]/b: the path's name contains a secret"}},
		"known, encoded":       {build: one("a/" + encoded), want: []string{"the path's name contains a secret"}},
		"of a link":            {build: func(b *builder) { b.commit(b.link(fakeToken(), "a")) }, want: []string{"[redacted]: "}},
		"what a link leads to": {build: func(b *builder) { b.commit(b.link("a", "b/"+fakeToken())) }, want: []string{"a: line 1 contains"}},
		"of a submodule": {build: func(b *builder) {
			b.commit(changeset.Change{Path: fakeToken(), Mode: changeset.ModeSubmodule, Blob: "c0ffee"})
		}, want: []string{"[redacted]: "}},
		"taken back later":                {build: func(b *builder) { b.commit(b.file(fakeToken(), "x")).commit(gone(fakeToken())) }, want: []string{"[redacted]: "}},
		"deleted":                         {build: func(b *builder) { b.commit(gone(fakeToken())) }},
		"there before":                    {build: one(fakeToken() + "/b"), policy: base(fakeToken() + "/b")},
		"in a folder of the base":         {build: one(fakeToken() + "/b"), policy: base(fakeToken() + "/a")},
		"elsewhere in the base":           {build: one("b/" + fakeToken()), policy: base("a/" + fakeToken()), want: []string{"b/[redacted]"}},
		"moved":                           {build: func(b *builder) { b.commit(gone("a/"+fakeToken()), b.file("b/"+fakeToken(), "x")) }, policy: base("a/" + fakeToken())},
		"moved from where nothing was":    {build: func(b *builder) { b.commit(gone("a/"+fakeToken()), b.file("b/"+fakeToken(), "x")) }, policy: base("c"), want: []string{"b/[redacted]"}},
		"parted by what is not shown":     {build: one("b/" + fakeToken()[:9] + "\ufe0f" + fakeToken()[9:]), policy: allowed([]string{"**"}), want: []string{"b/[redacted]"}},
		"known, parted":                   {build: one(knownSecret[:5] + "\u034f\u200d" + knownSecret[5:]), want: []string{"[redacted]: the path's name contains text that looks like a secret, split"}},
		"parted in the base":              {build: one(knownSecret[:5] + "\ufe0f" + knownSecret[5:]), policy: base(knownSecret[:5] + "\ufe0f" + knownSecret[5:])},
		"allowed":                         {build: one("testdata/" + fakeToken()), policy: allowed([]string{"testdata/**"})},
		"allowed, and given up":           {build: one("testdata/" + fakeToken()), policy: allowed([]string{"testdata/**"}, "other/**"), want: []string{"testdata/[redacted]"}},
		"allowed by the repository alone": {build: one("testdata/" + fakeToken()), policy: allowed(nil, "**"), want: []string{"testdata/[redacted]"}},
		"known, where others are allowed": {build: one("testdata/" + knownSecret), policy: allowed([]string{"**"}), want: []string{"testdata/[redacted]"}},
	}, RuleSubmodules)
}

func TestRefusalsContainNoSecret(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("d/", 200) + strings.Repeat("n", 250)
	const slashed = "first-part-1/second-part-2/third-part-3"
	known := secretscan.New(nil, knownSecret, slashed)
	for name, path := range map[string]string{
		"protected":           ".github/workflows/" + knownSecret,
		"a look-alike":        ".g\u200cithub/workflows/" + knownSecret,
		"a bad form":          "a/../" + knownSecret,
		"a control":           knownSecret + "\n/x",
		"a bad name":          knownSecret + ".",
		"a device":            "a/aux." + knownSecret,
		"a short name":        "a~1/" + knownSecret,
		"too long":            long + knownSecret,
		"its end":             knownSecret + "/" + long,
		"over several parts":  "a:/" + slashed + ":",
		"collides":            "A/" + knownSecret,
		"git's own directory": ".git/" + knownSecret,
		"parted":              knownSecret[:7] + "\u200b" + knownSecret[7:] + ".",
	} {
		b := &builder{}
		b.commitAs("Use "+knownSecret, b.file(path, knownSecret+fakeToken()), b.link(fakeToken(), "/"+knownSecret), b.file("a/"+knownSecret, "x"))
		for _, s := range []*secretscan.Scanner{scanner(t), known} {
			for _, r := range Judge(&b.cs, Policy{Scanner: s}) {
				all := r.Rule + r.Path + r.Detail + r.Remedy
				for _, secret := range append(strings.Split(slashed, "/"), knownSecret) {
					if strings.Contains(all, secret) && (s == known || secret == knownSecret) {
						t.Errorf("%s: refusal contains %q: %+v", name, secret, r)
					}
				}
				if half := knownSecret[7:]; strings.Contains(all, half) {
					t.Errorf("%s: refusal contains %q: %+v", name, half, r)
				}
				if s != known && strings.Contains(all, fakeToken()) {
					t.Errorf("%s: refusal contains a token: %+v", name, r)
				}
			}
		}
	}
	err := fmt.Errorf("%w: path %q: not sorted", changeset.ErrMalformed, strings.Repeat("x", 140)+knownSecret)
	if r, ok := Unreadable(err, scanner(t)); !ok || strings.Contains(r.Detail, knownSecret[:8]) {
		t.Errorf("the refusal of an unreadable changeset contains a secret: got %+v", r)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	say := func(message string) func(*builder) {
		return func(b *builder) { b.commitAs(message, b.file("a", "x")) }
	}
	checkRule(t, RuleMessages, map[string]ruleCase{
		"ordinary":         {build: say("Fix it\n\n\tIndented, with ünïcode and 👨‍👩‍👧.\r\n")},
		"empty":            {build: say(" \n"), want: []string{"the message of commit commit1 is empty"}},
		"10 kB":            {build: say(strings.Repeat("a", 10_000))},
		"a byte more":      {build: say(strings.Repeat("a", 10_001)), want: []string{"10001 bytes"}},
		"an escape":        {build: say("Fix \x1b[2J"), want: []string{"control or invisible"}},
		"bidi":             {build: say("Fix \u202egnihton"), want: []string{"control or invisible"}},
		"tag characters":   {build: say("Fix \U000E0041"), want: []string{"control or invisible"}},
		"not UTF-8":        {build: say("Fix \xff"), want: []string{"UTF-8"}},
		"a secret":         {build: say("Use " + fakeToken()), want: []string{"contains text that looks like a secret"}},
		"mentions are not": {build: say("Thank @octocat, fixes other/repo#3")},
	})
}

func TestSafeName(t *testing.T) {
	t.Parallel()
	home := Home{Owner: "acme", Name: "widget", Issue: 7}
	for name, tc := range map[string]struct{ in, want string }{
		"plain":              {"Ada Lovelace", "Ada Lovelace"},
		"of other scripts":   {"Æsa Þórsdóttir-O’Neil, Jr. 山田太郎", "Æsa Þórsdóttir-O’Neil, Jr. 山田太郎"},
		"on two lines":       {"Ada\r\nSigned-off-by: Eve", "Ada Signed-off-by Eve"},
		"with an address":    {"Ada <ada@example.org>", "Ada adaexample.org"},
		"bidi and invisible": {"A\u202eda\u200b Love\U000E0041lace\x00", "Ada Lovelace"},
		"emoji":              {"Ada 🚀", "Ada"},
		"a mention":          {"@acme/all", "acmeall"},
		"closes an issue":    {"Fixes gh-8", ""},
		"nothing":            {" \t", ""},
		"only marks":         {"\u0301\u0301 12", ""},
		"not UTF-8":          {"Ada\xff", "Ada"},
		"megabytes":          {strings.Repeat("x", 1<<20), strings.Repeat("x", 80)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := SafeName(tc.in, home); got != tc.want {
				t.Errorf("SafeName(%.80q) = %.200q, want %.200q", tc.in, got, tc.want)
			}
		})
	}
}

func TestAddTrailers(t *testing.T) {
	t.Parallel()
	const a, b = "Co-authored-by: Ada <a@b>", "Signed-off-by: Ada <a@b>"
	for name, tc := range map[string]struct {
		in    string
		lines []string
		want  string
	}{
		"none":                    {"Fix", nil, "Fix"},
		"a first line":            {"Fix", []string{a, b}, "Fix\n\n" + a + "\n" + b},
		"a first line with colon": {"docs: fix", []string{a}, "docs: fix\n\n" + a},
		"a body":                  {"Fix\n\nNote: this is\nprose.", []string{a}, "Fix\n\nNote: this is\nprose.\n\n" + a},
		"its own trailers":        {"Fix\n\nWhy.\n\nRefs: #3\nChange-Id: I1", []string{b}, "Fix\n\nWhy.\n\nRefs: #3\nChange-Id: I1\n" + b},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := AddTrailers(tc.in, tc.lines...); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSafeMessage(t *testing.T) {
	t.Parallel()
	home := Home{Owner: "acme", Name: "widget", Issue: 7}
	tests := map[string]struct{ in, want string }{
		"plain":                   {"Fix it\n\nBecause.\n", "Fix it\n\nBecause."},
		"own issue":               {"Fixes #7, closes acme/widget#7", "Fixes #7, closes acme/widget#7"},
		"another issue":           {"Fixes #8", "see #8"},
		"a longer number":         {"Fixes #77", "see #77"},
		"elsewhere":               {"resolved other/repo#7", "see other/repo#7"},
		"same name elsewhere":     {"fixes other/widget#7", "see other/widget#7"},
		"same owner elsewhere":    {"fixes acme/other#7", "see acme/other#7"},
		"a name that ends alike":  {"fixes an-acme/widget#7, fixes acme/the-widget#7", "see an-acme/widget#7, see acme/the-widget#7"},
		"by address":              {"Closes: https://github.com/other/repo/issues/7", "see https://github.com/other/repo/issues/7"},
		"short form":              {"fix GH-7 and fix GH-8", "fix GH-7 and see GH-8"},
		"no keyword":              {"prefix #8 and see #9", "prefix #8 and see #9"},
		"a person":                {"Ask @octocat.", "Ask @ octocat."},
		"a team, first":           {"@acme/all look", "@ acme/all look"},
		"an address":              {"Mail bob@example.org", "Mail bob@example.org"},
		"a person in code":        {"Use `@ada`, a message shows no code", "Use `@ ada`, a message shows no code"},
		"a person after a dot":    {"See.@ada ...@ada", "See.@ ada ...@ ada"},
		"a person after a slash":  {"See /@ada and a/@ada/b", "See /@ ada and a/@ ada/b"},
		"a person after a letter": {"é@ada", "é@ ada"},
		"several at once":         {"@@ada,@bob;@acme/all", "@@ ada,@ bob;@ acme/all"},
		"odd space":               {"Fixes\u00a0#8, closes\u2003other/repo#7", "see\u00a0#8, see\u2003other/repo#7"},
		"on the next line":        {"Fixes\n#8", "see\n#8"},
		"colon and odd space":     {"Fixes:\u3000#8 and closes :#9", "see\u3000#8 and see :#9"},
		"in markup":               {"**Fixes** #8, _closes_ `#9`, fixes (#10)", "**see** #8, _see_ `#9`, see (#10)"},
		"in markup, own":          {"**Fixes** #7", "**Fixes** #7"},
		"short form, odd space":   {"fix\u00a0gh-8", "see\u00a0gh-8"},
		"by address in brackets":  {"Closes <https://github.com/other/repo/pull/7>", "see <https://github.com/other/repo/pull/7>"},
		"words in between":        {"Fix the crash of #8, prefix-#8", "Fix the crash of #8, prefix-#8"},
		"a trailer, odd space":    {"Fix\n\n\u00a0Co-authored-by\u00a0: A <a@b>", "Fix"},
		"trailers":                {"Fix\n\nCo-authored-by: A <a@b>\nSigned-off-by: B <b@c>\nRefs: #3\n", "Fix\n\nRefs: #3"},
		"trailers of programs": {
			"Fix\n\nAI-assisted-by: X\nMade-with: Cursor\nCo-Authored-With: Claude\nNon-author-reviewed-by: X\nOn-behalf-of: @acme <a@b>\nSplit-by: commas", "Fix\n\nSplit-by: commas",
		},
		"an advertisement": {"Fix\n\n🤖 Generated with [Claude Code](https://claude.com/claude-code)\n\nCo-Authored-By: Claude <noreply@anthropic.com>\n", "Fix"},
		"more of them": {
			"Fix\n\nGenerated by OpenAI Codex CLI 0.4.\nCo-generated using *Gemini 2.5 Pro*\nMade with Cursor\nwritten via the GitHub Copilot agent\nAssisted-by: Claude:opus\nGenerated-by: Codex", "Fix",
		},
		"an advertisement first":  {"Generated with Codex\n\nFix", "Fix"},
		"what was generated":      {"Fix\n\nGenerated with protoc 3.2.\nGenerated with Claude's schema for tools.", "Fix\n\nGenerated with protoc 3.2.\nGenerated with Claude's schema for tools."},
		"only a trailer":          {"co-authored-by: A <a@b>", "Update files"},
		"skipping":                {"Fix [skip ci] [CI SKIP] [no ci]", "Fix (skip ci) (CI SKIP) (no ci)"},
		"skipping, nested":        {"[skip [skip ci]ci]", "[skip (skip ci)ci]"},
		"skipping by trailer":     {"Fix\n\n\nskip-checks: true", "Fix"},
		"line ends of elsewhere":  {"Fix\r\n\r\nIt\r", "Fix\n\nIt"},
		"a heading in the middle": {"Fix\n\n\n\nIt", "Fix\n\nIt"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := SafeMessage(tc.in, home); got != tc.want {
				t.Errorf("SafeMessage(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}
