package command

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/errand-bot/errand/internal/cputest"
	"github.com/errand-bot/errand/state"
)

func TestClassifyRemark(t *testing.T) {
	t.Parallel()
	for want, texts := range map[state.Remark][]string{
		state.RemarkThanks: {
			"Thanks!", "thank you", "Thank you very much!", "thx", "Thanks a lot 🙏", "Thanks, @grace!", "Thanks @errand!", "Great, thanks!", "Cheers 👍",
			"Nice plan. Thanks!", "Thank you all.", "Thanks for the quick plan!", "**Thanks!**", "Many thanks, team", "thanks\n\n:tada:", "Thanks \u200b!",
			"Danke!", "Merci beaucoup 🙏", "Gracias!", "谢谢", "Спасибо!", "Thanks errand!", "Thank you, Errand, for the thorough plan", "Thanks mate :heart_eyes:",
		},
		state.RemarkReaction: {
			"👍", "👍🏽", "🎉🎉🎉", "❤️", "👨‍👩‍👧", "+1", "+1!", "+1 👍", ":+1:", ":tada: :rocket:", ":)", ":thinking:", ":-1:", "Good bot!", "Great!", "Nice work!", "awesome", "Me too",
		},
		state.RemarkApproving: {
			"LGTM", "lgtm!", "LGTM 👍", "Looks good to me", "looks good to me.", "Thanks, looks good to me!", "ok", "OK, go ahead", "ok, go ahead", "Okay then",
			"Ship it", "ship it! 🚀", "Go for it", "Yes", "yes, please", "Sounds good, thanks", "Let’s do it", "I agree", "This looks great to me", "Approved!",
			"approve", "Perfect, go ahead.", "Works for me", "I think this looks good", "+1, ship it", "Sounds like a plan!", "LGTM :shipit:", "looks good to us", "looks good on my end\r\n\r\nThanks\r\n", "Let's do that",
		},
		state.RemarkToOthers: {
			"@grace what do you think?", "@grace, @heidi: can you look at this?", "@grace and @heidi, thoughts?", "@grace", "Hi @grace, what do you think?",
			"hey @grace can you check the second step?", "cc @grace", "/cc @acme/team", "FYI @grace", "@grace: use a map?", "@acme/reviewers please have a look",
			"@grace would you agree?", "@errands hello", "@grace / @heidi your turn", "@dependabot rebase", "@Grace Thanks!",
			"> use a map\n\n@grace what do you think?", "> @errand use a map\r\n> please\r\n\r\n@grace?", "> a\n\n> b\nc\n\n@grace, thoughts?",
		},
		"": {
			"", " ", "?", "...", "Use a map.", "Use a map. cc @grace", "Thanks, but use a map", "LGTM except the name", "LGTM, but rename it", "Looks good?",
			"What would it cost?", "ok?", "no", "No, thanks", "not ok", "+2", "+1 for a map", "+1000", "-1", "ok if you use a map", "go on with the map",
			"Thanks! Use a map.", "👍 but use a map", "yes to the first, no to the second", "@grace is right", "@grace's idea is better", "@grace said use a map",
			"@grace suggested a map", "@grace wants a map", "@grace and I prefer a map", "@grace would do it with a map", "@errand use a map", "@errand",
			"@errand, @grace: use a map", "@grace, @errand what do you think?", "@errand[bot] hi", "hi @errand", "the plan", "please", "Thanks @", "thanks https://example.com",
			"Thanks `x`", "> LGTM", "> use a map\n\nThanks!", "Thanks <!-- use a map -->", "![thanks](x.png)", "LGTM 2", "approve 2", "Go ahead with approach 2",
			"Danke, aber mit einer Map", "❓", "LGTM ❓", "> use a map\n@grace what do you think?", "> use a map\n\n@errand, @grace?", "> @grace", ">\n\n", "I like it a lot more with a map", "user@example.com thanks x", "`@grace` thanks", "Ⓛⓖⓣⓜ", "🇳🇴", "thanks\u202eparam", "approve a1b2c3d4",
			strings.Repeat("thanks ", 100),
		},
	} {
		for _, text := range texts {
			if got := ClassifyRemark(text, "errand"); got != want {
				t.Errorf("%q: got %q, want %q", text, got, want)
			}
		}
	}
}

// TestRemarkPhrasesAreOfOneKind: otherwise the kind of a comment would depend on the order of a map.
func TestRemarkPhrasesAreOfOneKind(t *testing.T) {
	t.Parallel()
	seen := map[string]state.Remark{}
	for kind, phrases := range remarkPhrases() {
		for _, p := range phrases {
			if old, ok := seen[p]; ok {
				t.Errorf("%q is of the kinds %q and %q", p, old, kind)
			}
			seen[p] = kind
			if p != strings.ToLower(p) || p != mentionWord && p != emojiWord && p != "+1" && strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != ' ' }) {
				t.Errorf("%q is not written as texts are split", p)
			}
		}
	}
}

// TestLongTextsAreClassifiedQuickly: the time for the longest texts is bounded.
func TestLongTextsAreClassifiedQuickly(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"thanks ", "@", "@grace ", "👍", "@grace, ", ":+1:", "hi ", "\u200b", "(", "-", ">\n\n", "> a\n"} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		if took := cputest.Time(t, func() { ClassifyRemark(text, "errand") }); took > 10*time.Second {
			t.Errorf("a megabyte of %q took %s", unit, took)
		}
	}
}

// FuzzRemark: a text that starts nothing consists of known words only, or begins by addressing somebody other than the bot;
// whatever is added to the former makes it a message. Mail signatures and quoted mails are ignored.
func FuzzRemark(f *testing.F) {
	for _, s := range []string{"Thanks!", "LGTM 👍", "+1", "@grace what do you think?", "Hi @grace, @heidi and @errand", "Use a map. cc @grace", "ok, go ahead :tada:", "Let’s go\u200d", "K", "LGTM" + quoted, "Thanks\n-- \nAda"} {
		f.Add(s)
	}
	known := map[string]bool{}
	for _, phrases := range remarkPhrases() {
		for _, p := range phrases {
			for _, w := range strings.FieldsFunc(p, notLetter) {
				known[w] = true
			}
		}
	}
	for _, w := range []string{"tada", "thumbsup", "heart", "rocket", "pray", "raised", "hands", "ok", "hand", "white", "check", "mark", "clap", "smile", "smiley", "slightly", "smiling", "face", "fire", "sparkles", "muscle", "star", "eyes", "wave", "d", "lt", "joy", "grin", "laughing", "blush",
		"wink", "sunglasses", "partying", "confetti", "ball", "hugs", "bow", "handshake", "shipit", "heavy", "thinking", "thumbsdown", "blue", "green", "purple", "errand"} {
		known[w] = true // names of emoji
	}
	f.Fuzz(func(t *testing.T, text string) {
		switch kind := ClassifyRemark(text, "errand"); kind {
		case "":
		case state.RemarkToOthers:
			own := afterQuote(strings.TrimSpace(text))
			first, _, _ := strings.Cut(strings.ToLower(own[strings.Index(own, "@"):]), " ")
			if strings.HasPrefix(first, "@errand ") || first == "@errand" || first == "@errand[bot]" {
				t.Errorf("%q addresses the bot", text)
			}
		default:
			text = cutAppended(strings.TrimSpace(text))
			for _, w := range words(text) {
				if !known[w] {
					t.Errorf("%q is %q although it contains %q", text, kind, w)
				}
			}
			for _, more := range []string{" zebra", "?", "\n\nuse a map", " #5", " `x`"} {
				if got := ClassifyRemark(text+more, "errand"); got != "" {
					t.Errorf("%q is %q", text+more, got)
				}
			}
		}
	})
}

// words returns the words of a text in lower case, without mentions.
func words(text string) (list []string) {
	for _, field := range strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(text, "’", "'")), func(r rune) bool { return unicode.IsSpace(r) }) {
		before, _, _ := strings.Cut(field, "@")
		list = append(list, strings.FieldsFunc(before, notLetter)...)
	}
	return list
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }
