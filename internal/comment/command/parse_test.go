package command

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/cputest"
	"github.com/errand-bot/errand/state"
)

// parsing is a comment and its parsed form.
type parsing struct {
	body string
	onPR bool
	want Parsed
}

func one(o state.Order) Parsed { return Parsed{Mention: true, Orders: []state.Order{o}} }

func message(s string) Parsed { return one(state.Order{Verb: state.VerbMessage, Text: s}) }

func approve() Parsed { return one(state.Order{Verb: state.VerbApprove}) }

func approvals() map[string]parsing {
	return map[string]parsing{
		"approve":              {body: "@errand approve", want: approve()},
		"case":                 {body: "@ERRAND Approve", want: approve()},
		"bot suffix":           {body: "@errand[bot] approve", want: approve()},
		"colon":                {body: "@errand: approve", want: approve()},
		"comma":                {body: "@errand, approve!", want: approve()},
		"polite":               {body: "@errand approve, please.", want: approve()},
		"windows line ends":    {body: "@errand approve\r\n", want: approve()},
		"leading spaces":       {body: "  @errand approve", want: approve()},
		"after a heading line": {body: "@errand approve\n---", want: one(state.Order{Verb: state.VerbApprove, With: "---"})},
		"hash":                 {body: "@errand approve A1B2C3D4", want: one(state.Order{Verb: state.VerbApprove, Hash: "a1b2c3d4"})},
		"hash in code":         {body: "@errand approve `a1b2c3d4`", want: one(state.Order{Verb: state.VerbApprove, Hash: "a1b2c3d4"})},
		"all digits are hash":  {body: "@errand approve 12345678", want: one(state.Order{Verb: state.VerbApprove, Hash: "12345678"})},
		"choice":               {body: "@errand approve 2", want: one(state.Order{Verb: state.VerbApprove, Choice: 2})},
		"hash and choice":      {body: "@errand approve a1b2c3d 2", want: one(state.Order{Verb: state.VerbApprove, Hash: "a1b2c3d", Choice: 2})},
		"with":                 {body: "@errand approve with: keep `-v`\nand the docs", want: one(state.Order{Verb: state.VerbApprove, With: "keep `-v`\nand the docs"})},
		"with paragraphs":      {body: "@errand approve with: x\n\ny", want: one(state.Order{Verb: state.VerbApprove, With: "x\n\ny"})},
		"all three":            {body: "@errand approve a1b2c3d 1 with: x", want: one(state.Order{Verb: state.VerbApprove, Hash: "a1b2c3d", Choice: 1, With: "x"})},
		"text below approve":   {body: "@errand approve\n\nbut mind the tests", want: one(state.Order{Verb: state.VerbApprove, With: "but mind the tests"})},
		"approve but":          {body: "@errand approve but rename it first", want: message("approve but rename it first")},
		"not approve":          {body: "@errand do not approve", want: message("do not approve")},
		"choice zero":          {body: "@errand approve 0", want: message("approve 0")},
	}
}

func commands() map[string]parsing {
	return map[string]parsing{
		"retry":                 {body: "@errand retry fresh turns=60", want: one(state.Order{Verb: state.VerbRetry, Fresh: true, Turns: 60})},
		"after":                 {body: "@errand after: add a line\nto the log", want: Parsed{Mention: true, Orders: []state.Order{{Verb: state.VerbMessage, Text: "add a line\nto the log", After: true}}}},
		"after below":           {body: "@errand After:\n\nadd a line", want: Parsed{Mention: true, Orders: []state.Order{{Verb: state.VerbMessage, Text: "add a line", After: true}}}},
		"after without colon":   {body: "@errand after the merge, add a line", want: message("after the merge, add a line")},
		"after nothing":         {body: "@errand after:", want: one(state.Order{Verb: state.VerbUnknown, Arg: "after: add a line to the changelog", Text: "after:"})},
		"after and at once":     {body: "@errand after: add a line\n@errand use tabs", want: message("add a line\n\nuse tabs")},
		"after a command":       {body: "@errand budget +5\n@errand after: stop", want: Parsed{Mention: true, Orders: []state.Order{{Verb: state.VerbBudget, MicroUSD: 5_000_000}, {Verb: state.VerbMessage, Text: "stop", After: true}}}},
		"retry in prose":        {body: "@errand retry the flaky test", want: message("retry the flaky test")},
		"retry bound":           {body: "@errand retry turns=100000", want: one(state.Order{Verb: state.VerbUnknown, Arg: "retry fresh turns=60", Text: "retry turns=100000"})},
		"budget":                {body: "@errand budget +5", want: one(state.Order{Verb: state.VerbBudget, MicroUSD: 5_000_000})},
		"budget decimals":       {body: "@errand budget +$2.50", want: one(state.Order{Verb: state.VerbBudget, MicroUSD: 2_500_000})},
		"budget of tokens":      {body: "@errand budget +500k tokens", want: one(state.Order{Verb: state.VerbBudget, Tokens: 500_000})},
		"budget of millions":    {body: "@errand budget 2M tokens, please", want: one(state.Order{Verb: state.VerbBudget, Tokens: 2_000_000})},
		"budget of hours":       {body: "@errand budget +12h", want: one(state.Order{Verb: state.VerbBudget, VMHours: 12})},
		"budget hours in words": {body: "@errand budget 3 VM hours, thanks", want: one(state.Order{Verb: state.VerbBudget, VMHours: 3})},
		"budget hours bound":    {body: "@errand budget +1001h", want: one(state.Order{Verb: state.VerbUnknown, Arg: "budget +5", Text: "budget +1001h"})},
		"budget no hours":       {body: "@errand budget +0h", want: one(state.Order{Verb: state.VerbUnknown, Arg: "budget +5", Text: "budget +0h"})},
		"budget of one token":   {body: "@errand budget +1 token", want: one(state.Order{Verb: state.VerbBudget, Tokens: 1})},
		"budget tokens bound":   {body: "@errand budget +2000M tokens", want: one(state.Order{Verb: state.VerbUnknown, Arg: "budget +5", Text: "budget +2000M tokens"})},
		"budget bound":          {body: "@errand budget +1000.01", want: one(state.Order{Verb: state.VerbUnknown, Arg: "budget +5", Text: "budget +1000.01"})},
		"budget zero":           {body: "@errand budget +0", want: one(state.Order{Verb: state.VerbUnknown, Arg: "budget +5", Text: "budget +0"})},
		"budget minus":          {body: "@errand budget -5", want: message("budget -5")},
		"budget huge":           {body: "@errand budget +999999999999", want: one(state.Order{Verb: state.VerbUnknown, Arg: "budget +5", Text: "budget +999999999999"})},
		"model":                 {body: "@errand model claude-opus-4.1", want: one(state.Order{Verb: state.VerbModel, Arg: "claude-opus-4.1"})},
		"model prose":           {body: "@errand model the domain first", want: message("model the domain first")},
		"create pr":             {body: "@errand create PR ABC-12", want: one(state.Order{Verb: state.VerbCreatePR, Arg: "ABC-12"})},
		"restart":               {body: "@errand restart, please", want: one(state.Order{Verb: state.VerbRestart})},
		"create issue":          {body: "@errand Create issue #2, please", want: one(state.Order{Verb: state.VerbIssue, Choice: 2})},
		"create issue which":    {body: "@errand create issue 21", want: one(state.Order{Verb: state.VerbUnknown, Arg: "create issue 1", Text: "create issue 21"})},
		"create issue for":      {body: "@errand create issue for the docs", want: one(state.Order{Verb: state.VerbMessage, Text: "create issue for the docs"})},
		"create pull request":   {body: "@errand create pull request", want: one(state.Order{Verb: state.VerbCreatePR})},
		"create pr on a pr":     {body: "@errand create pr", onPR: true, want: message("create pr")},
		"replan with words":     {body: "@errand replan: the API is gone", want: one(state.Order{Verb: state.VerbReplan, Text: "the API is gone"})},
		"plan":                  {body: "@errand go", want: one(state.Order{Verb: state.VerbPlan})},
		"bare":                  {body: "@errand", want: one(state.Order{Verb: state.VerbPlan})},
		"plan base":             {body: "@errand plan base: release/1.2", want: Parsed{Mention: true, Base: "release/1.2", Orders: []state.Order{{Verb: state.VerbPlan, Arg: "release/1.2"}}}},
		"base in a message":     {body: "@errand fix it, base: develop.", want: Parsed{Mention: true, Base: "develop", Orders: []state.Order{{Verb: state.VerbMessage, Text: "fix it, base: develop."}}}},
		"base that git hates":   {body: "@errand plan base: a..b", want: message("plan base: a..b")},
		"message":               {body: "@errand why not use a map?\n\n```go\nx := 1\n```", want: message("why not use a map?\n\n```go\nx := 1\n```")},
		"lead":                  {body: "It fails on Windows.\n\n@errand look at that", want: Parsed{Mention: true, Text: "It fails on Windows.", Orders: []state.Order{{Verb: state.VerbMessage, Text: "It fails on Windows.\n\nlook at that"}}}},
		"lead and command":      {body: "Nice work.\n@errand approve", want: Parsed{Mention: true, Text: "Nice work.", Orders: []state.Order{{Verb: state.VerbApprove}}}},
		"several":               {body: "@errand budget +5\n@errand retry", want: Parsed{Mention: true, Orders: []state.Order{{Verb: state.VerbBudget, MicroUSD: 5_000_000}, {Verb: state.VerbRetry}}}},
		"command and message":   {body: "@errand retry\nand look at the lock", want: Parsed{Mention: true, Orders: []state.Order{{Verb: state.VerbRetry}, {Verb: state.VerbMessage, Text: "and look at the lock"}}}},
		"thanks below":          {body: "@errand budget +5\n\nThanks!", want: Parsed{Mention: true, Remark: state.RemarkThanks, Orders: []state.Order{{Verb: state.VerbBudget, MicroUSD: 5_000_000}, {Verb: state.VerbMessage, Text: "Thanks!"}}}},
		"to others below":       {body: "@errand status\n@grace FYI", want: Parsed{Mention: true, Remark: state.RemarkToOthers, Orders: []state.Order{{Verb: state.VerbStatus}, {Verb: state.VerbMessage, Text: "@grace FYI"}}}},
		"thanks below approve":  {body: "@errand approve a1b2c3d4\n\nLooks great, thanks! 🎉", want: one(state.Order{Verb: state.VerbApprove, Hash: "a1b2c3d4"})},
		"words below approve":   {body: "@errand approve\n\nThanks, but use a map.", want: one(state.Order{Verb: state.VerbApprove, With: "Thanks, but use a map."})},
		"two messages are one":  {body: "@errand first\n@errand second", want: message("first\n\nsecond")},
		"cancel with a reason":  {body: "@errand cancel\nwe changed our minds", want: one(state.Order{Verb: state.VerbCancel, Text: "we changed our minds"})},
		"misspelt":              {body: "@errand aprove", want: one(state.Order{Verb: state.VerbUnknown, Arg: "approve", Text: "aprove"})},
		"misspelt with a hash":  {body: "@errand approv a1b2c3d4", want: one(state.Order{Verb: state.VerbUnknown, Arg: "approve", Text: "approv a1b2c3d4"})},
		"one odd word":          {body: "@errand thanks", want: Parsed{Mention: true, Remark: state.RemarkThanks, Orders: message("thanks").Orders}},
		"short odd word":        {body: "@errand ok", want: Parsed{Mention: true, Remark: state.RemarkApproving, Orders: message("ok").Orders}},
		"like replan in prose":  {body: "@errand reply to Bob", want: message("reply to Bob")},
	}
}

func noCommands() map[string]parsing {
	return map[string]parsing{
		"in a line":         {body: "ask @errand approve", want: Parsed{Text: "ask @errand approve"}},
		"other name":        {body: "@errands approve", want: Parsed{Text: "@errands approve", Remark: state.RemarkToOthers}},
		"team":              {body: "@errand/team approve", want: Parsed{Text: "@errand/team approve", Remark: state.RemarkToOthers}},
		"long s is no s":    {body: "@errand ſtop", want: one(state.Order{Verb: state.VerbUnknown, Arg: "stop", Text: "ſtop"})},
		"quote":             {body: "> @errand approve", want: Parsed{Quoted: true, Text: "> @errand approve"}},
		"lazy quote":        {body: "> plan\n@errand approve", want: Parsed{Quoted: true, Text: "> plan\n@errand approve"}},
		"after a quote":     {body: "> plan\n\n@errand approve", want: Parsed{Mention: true, Text: "> plan", Orders: approve().Orders}},
		"fence":             {body: "```\n@errand approve\n```", want: Parsed{Quoted: true, Text: "```\n@errand approve\n```"}},
		"open fence":        {body: "~~~\n@errand approve", want: Parsed{Quoted: true, Text: "~~~\n@errand approve"}},
		"indented code":     {body: "x\n\n    @errand approve", want: Parsed{Quoted: true, Words: true, Text: "x\n\n    @errand approve"}},
		"code span":         {body: "`@errand approve`", want: Parsed{Quoted: true, Text: "`@errand approve`"}},
		"code over lines":   {body: "see `a\n@errand approve\nb`", want: Parsed{Quoted: true, Words: true, Text: "see `a\n@errand approve\nb`"}},
		"HTML comment":      {body: "<!--\n@errand approve\n-->", want: Parsed{Quoted: true, Text: "<!--\n@errand approve\n-->"}},
		"inline comment":    {body: "x <!-- y\n@errand approve\n--> z", want: Parsed{Quoted: true, Words: true, Text: "x <!-- y\n@errand approve\n--> z"}},
		"details":           {body: "<details>\n@errand approve\n</details>", want: Parsed{Quoted: true, Text: "<details>\n@errand approve\n</details>"}},
		"attribute":         {body: "x <a title='\n@errand approve\n'>y</a>", want: Parsed{Quoted: true, Words: true, Text: "x <a title='\n@errand approve\n'>y</a>"}},
		"reference":         {body: "[x]:\n@errand", want: Parsed{Quoted: true, Text: "[x]:\n@errand"}},
		"list item":         {body: "- @errand approve", want: Parsed{Quoted: true, Text: "- @errand approve"}},
		"list continuation": {body: "- a\n  @errand approve", want: Parsed{Quoted: true, Words: true, Text: "- a\n  @errand approve"}},
		"quoted message":    {body: "> @errand use a list\n\nRather a map.", want: Parsed{Text: "> @errand use a list\n\nRather a map."}},
		"message in a list": {body: "- @errand use a map", want: Parsed{Text: "- @errand use a map"}},
		"bold command":      {body: "**@errand cancel**", want: Parsed{Quoted: true, Text: "**@errand cancel**"}},
		"quote and words":   {body: "> @errand approve\n\nRather a map.", want: Parsed{Quoted: true, Words: true, Text: "> @errand approve\n\nRather a map."}},
		"base in code":      {body: "```\nbase: develop\n```", want: Parsed{Text: "```\nbase: develop\n```"}},
		"base on a fence":   {body: "> ``` base: x", want: Parsed{Text: "> ``` base: x"}},
		"base in a list":    {body: "- base: develop", want: Parsed{Text: "- base: develop", Base: "develop"}},
		"base in its code":  {body: "- x `base: y`\n  ```\n  base: z\n  ```", want: Parsed{Text: "- x `base: y`\n  ```\n  base: z\n  ```"}},
		"empty":             {body: "", want: Parsed{}},
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tests := range []map[string]parsing{approvals(), commands(), noCommands()} {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(tt.want, Parse(tt.body, "errand", tt.onPR)); diff != "" {
					t.Errorf("Parse(%q) differs (-want +got):\n%s", tt.body, diff)
				}
			})
		}
	}
}

// The bound is generous, for the race detector: a parser that is worse than quadratic takes minutes here.
func TestParseTimeIsBounded(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"quotes": ">", "brackets": "[", "ticks": "`a``b", "stars": "**a *", "lists": "- ", "HTML": "<a b='",
		"deep lines": "> > > x\n", "mentions": "@errand x\n", "comment": "<!-- ", "tables": "|a\n", "refs": "[a]: ", "nested list": "  - x\n",
		"spaces": " \t", "backslash": "\\", "fences": "```\n~~~\n", "references": "[a]: b\n", "commands": "@errand approve with: \n",
		"link starts": "[a](", "images": "![a](b \"c\n", "formulas": "$x$ ", "formula blocks": "$$\n", "open elements": "<s>\n\n", "elements": "<s>x</s> ",
		"closed elements": "<td></s>", "comments": "<!-- x -->", "open tags": "<div a=\n\n", "footnotes": "[^a]: x\n", "tildes": "~a ~~b ", "table rows": "|a|\n|-|\n", "deep lists": "- x\n  ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.Repeat(unit, maxBody/len(unit)) + "\n\n@errand approve"
			took := cputest.Time(t, func() {
				Parse(body, "errand", false)
				Parse("@errand help\n\n"+body, "errand", false)
			})
			if took > time.Minute {
				t.Errorf("parsing took %v of processor time, want at most a minute", took)
			}
		})
	}
}

func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, c := range Table() {
		got := Parse("@errand "+c.Example, "errand", c.Where == OnPR)
		if len(got.Orders) != 1 || got.Orders[0].Verb != c.Verb {
			t.Errorf("example %q is parsed as %+v", c.Example, got.Orders)
		}
		for _, word := range c.Words {
			if word != asciiLower(word) || (!strings.HasPrefix(c.Usage, c.Words[0])) {
				t.Errorf("%s: word %q or usage %q", c.Verb, word, c.Usage)
			}
		}
	}
}
