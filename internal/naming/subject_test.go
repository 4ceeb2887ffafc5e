package naming

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSubject(t *testing.T) {
	t.Parallel()
	v := Values{Key: "ABC-1", Number: 7, Slug: "div-panics", Task: "unused"}
	without := Values{Number: 7, Slug: "div-panics"}
	for name, c := range map[string]struct {
		template string
		vars     Values
		round    bool
		line     string
		want     string
		dropped  bool
	}{
		"any":                             {"{task}", v, false, "Greet the world", "Greet the world", false},
		"fits":                            {"{key} {task}", v, false, "ABC-1 Greet the world", "ABC-1 Greet the world", false},
		"lacks the key":                   {"{key} {task}", v, false, "Greet the world", "ABC-1 Greet the world", false},
		"another issue's key":             {"{key} {task}", v, false, "ABC-12 Greet", "ABC-1 ABC-12 Greet", false},
		"the key, but no space":           {"{key} {task}", v, false, "ABC-1", "ABC-1 ABC-1", false},
		"the key by another separator":    {"{key} {task}", v, false, "[abc-1]: Greet", "ABC-1 Greet", false},
		"the key at the end":              {"{key} {task}", v, false, "Greet (ABC-1)", "ABC-1 Greet", false},
		"the key in another case":         {"{key} {task}", v, false, "abc-1 Greet", "ABC-1 Greet", false},
		"the key in the words":            {"{key} {task}", v, false, "Undo ABC-1 again", "ABC-1 Undo ABC-1 again", false},
		"no key is known":                 {"{key}: {task}", without, false, "Greet", "Greet", false},
		"no key, brackets":                {"[{key}] feat: {task}", without, false, "Greet", "feat: Greet", false},
		"a prefix in another case":        {"feat: {task}", v, false, "Feat: greet", "feat: greet", false},
		"a suffix":                        {"{task} (#{number})", v, false, "Greet", "Greet (#7)", false},
		"a suffix that is there":          {"{task} (#{number})", v, false, "Greet (#7)", "Greet (#7)", false},
		"another issue's number":          {"{task} (#{number})", v, false, "Greet (#77)", "Greet (#77) (#7)", false},
		"a number that is a word":         {"#{number} {task}", v, false, "7 worlds", "#7 7 worlds", false},
		"a number with its sign":          {"#{number}: {task}", v, false, "#7 Greet", "#7: Greet", false},
		"what looks like a pattern":       {"{task} [a-z]+ .*", v, false, "Greet abc", "Greet abc [a-z]+ .*", false},
		"placeholders in the words":       {"{key} {task}", v, false, "Fill {key} and {task}", "ABC-1 Fill {key} and {task}", false},
		"slug and task":                   {"{slug}: {task}", v, false, "Greet", "div-panics: Greet", false},
		"another slug":                    {"{slug}: {task}", v, false, "parser: Greet", "parser: Greet", false},
		"no place for words":              {"Work on #{number}", v, false, "Greet", "Work on #7", true},
		"no place for words, but it fits": {"Work on #{number}", v, false, "Work on #7", "Work on #7", false},
		"a slug of the words":             {"{key}-{slug}", v, false, "Greet the world", "ABC-1-greet-the-world", true},
		"unicode":                         {"{key} {task}", v, false, "Größe 👍", "ABC-1 Größe 👍", false},
		"a round":                         {"{key} {task}", v, true, "Greet twice", "ABC-1 Address review feedback — Greet twice", false},
		"a round by default":              {"{task}", v, true, "Greet twice", "Address review feedback — Greet twice", false},
		"a round, fits":                   {"{key} {task}", v, true, "ABC-1 Address review feedback — Greet", "ABC-1 Address review feedback — Greet", false},
		"a round, fits without summary":   {"{key} {task}", v, true, "ABC-1 Address review feedback", "ABC-1 Address review feedback", false},
		"a round without the key":         {"{key} {task}", v, true, "address review feedback: Greet", "ABC-1 Address review feedback — Greet", false},
		"a round with the key":            {"{key} {task}", v, true, "ABC-1 Greet", "ABC-1 Address review feedback — Greet", false},
		"a round with a suffix":           {"{task} ({key})", v, true, "Greet (abc-1)", "Address review feedback — Greet (ABC-1)", false},
		"a round of no words":             {"{key} {task}", v, true, "", "ABC-1 Address review feedback", false},
		"a round without place":           {"Work on #{number}", v, true, "Greet", "Work on #7", true},
		"a key of two lines":              {"{key} {task}", Values{Key: "ABC\n1"}, false, "Greet", "ABC 1 Greet", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, kept := Subject(c.template, c.vars, c.round, c.line)
			if got != c.want || kept == c.dropped {
				t.Errorf("%q, kept %v; want %q, %v", got, kept, c.want, !c.dropped)
			}
			if again, kept := Subject(c.template, c.vars, c.round, got); again != got || !kept {
				t.Errorf("applied again: %q, kept %v", again, kept)
			}
		})
	}
}

// FuzzSubject: for any line of an agent, the result has the template's form, and applying the form again changes nothing.
func FuzzSubject(f *testing.F) {
	f.Add("{key} {task}", "ABC-1", "Greet", true)
	f.Add("{task} ({key}) {task}", "", "(?i) — ", false)
	f.Add("{slug}{number}[{key}]", "[", "Address review feedback", true)
	f.Add("feat({key}): {task}", "", "fixup! feat: Greet", true)
	f.Add("{task} {task}", "a+b(", "Revert \"ABC-1 Greet\"", true)
	f.Add("{key}-{key}: {task}", "", "ABC-1:", false)
	f.Fuzz(func(t *testing.T, template, key, line string, round bool) {
		v := Values{Key: key, Number: 7, Slug: "div-panics", Task: "x"}
		if whole, err := Expand(template, v); err != nil || whole == "" || strings.ContainsAny(template, "\r\n") || !utf8.ValidString(template) {
			t.Skip() // the settings are refused
		}
		once, _ := Subject(template, v, round, line)
		if twice, kept := Subject(template, v, round, once); twice != once || !kept {
			t.Errorf("%q becomes %q, then %q", line, once, twice)
		}
	})
}

func TestSubjectForm(t *testing.T) {
	t.Parallel()
	v := Values{Key: "ABC-1", Number: 7, Slug: "div-panics"}
	for name, c := range map[string]struct {
		template string
		round    bool
		want     string
	}{
		"any":             {"{task}", false, ""},
		"a prefix":        {"fix: {task}", false, "fix: {task}"},
		"a key":           {"{key}: {task}", false, "ABC-1: {task}"},
		"a suffix":        {"{task} (#{number})", false, "{task} (#7)"},
		"a round":         {"{key}: {task}", true, "ABC-1: Address review feedback — {summary}"},
		"a round, any":    {"{task}", true, "Address review feedback — {summary}"},
		"a round, suffix": {"{task} (#{number})", true, "Address review feedback — {summary} (#7)"},
		"no words":        {"Work on #{number}", true, "Work on #7"},
		"wrong":           {"{what}", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := SubjectForm(c.template, v, c.round); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestBranchesOf(t *testing.T) {
	t.Parallel()
	v := Values{Key: "ABC-1", Number: 1, Slug: "greet", Task: "Greet"}
	without := Values{Number: 1, Slug: "greet", Task: "Greet"}
	for name, c := range map[string]struct {
		template string
		vars     Values
		prefix   string
		yes, no  string // separated by spaces
	}{
		"number and slug":         {"errand/{number}-{slug}", v, "errand/1-", "errand/1-greet errand/1-else errand/1-Some_Thing/2", "errand/12-greet errand/1 errand/1- errand/1greet errand/11-greet x/errand/1-greet"},
		"number alone":            {"errand/{number}", v, "errand/1", "errand/1", "errand/12 errand/1-greet"},
		"number at the end":       {"{slug}-{number}", v, "", "greet-1 else-1", "greet-11 greet-12 greet main"},
		"number without a border": {"b{number}{slug}", v, "b1", "b1greet b1-x", "b12-greet b1"},
		"slug without a border":   {"{slug}{number}", v, "", "greet1 x-1", "greet11 1"},
		"between":                 {"{number}{slug}{number}", v, "1", "1greet1 1x1", "11 1121"},
		"key and slug":            {"{key}/{slug}", v, "ABC-1/", "ABC-1/greet ABC-1/else", "ABC-12/greet ABC-1 XABC-1/greet"},
		"key without a border":    {"{slug}{key}", v, "", "x-ABC-1 greetABC-1", "xABC-1 x-ABC-12"},
		"no key is known":         {"{key}/{slug}", without, "greet", "greet", "main else greet-2"},
		"no key, but the number":  {"{key}/{number}-{slug}", without, "1-", "1-greet 1-else", "12-greet ABC-1/1-greet"},
		"neither number nor key":  {"bot/{slug}", v, "bot/greet", "bot/greet", "bot/else bot/greet-2"},
		"like a pattern":          {"a.b+/{number}.{slug}", v, "a.b+/1.", "a.b+/1.x", "aXb+/1.x a.b+/1x a.bb/1.x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := BranchesOf(c.template, c.vars)
			if err != nil || b.Prefix != c.prefix {
				t.Fatalf("prefix %q, %v; want %q", b.Prefix, err, c.prefix)
			}
			for want, list := range map[bool]string{true: c.yes, false: c.no} {
				for branch := range strings.FieldsSeq(list) {
					if b.Has(branch) != want {
						t.Errorf("%s: %v", branch, !want)
					}
					if want && !strings.HasPrefix(branch, b.Prefix) {
						t.Errorf("%s does not begin with %q", branch, b.Prefix)
					}
				}
			}
		})
	}
	if _, err := BranchesOf("{what}", v); err == nil {
		t.Error("an unknown placeholder is accepted")
	}
}
