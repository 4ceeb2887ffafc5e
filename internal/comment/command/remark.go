package command

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/errand-bot/errand/state"
)

// maxRemark is the length of the longest text, in bytes, that can be a thank-you, a reaction or a bare approval.
const maxRemark = 400

// ClassifyRemark returns the kind of a comment that requests nothing from the agent, or "" for a message to it. slug is the
// bot's name in mentions.
//
// A text that contains anything besides known phrases is a message, and so is every question. A text that begins with the
// mention of somebody else is addressed to that person. The text may be untrusted, so the time is bounded.
func ClassifyRemark(text, slug string) state.Remark {
	text = cutAppended(strings.TrimSpace(text))
	if addressesOthers(text, slug) {
		return state.RemarkToOthers
	}
	if len(text) > maxRemark {
		return ""
	}
	words := remarkWords(text)
	for i := range words {
		if words[i] == asciiLower(slug) { // "Thanks errand!"
			words[i] = mentionWord
		}
	}
	return classifyPhrases(words)
}

// classifyPhrases returns the kind of a text that consists of known phrases only.
func classifyPhrases(words []string) state.Remark {
	var found state.Remark
	for len(words) > 0 {
		kind, n := longestPhrase(words)
		if n == 0 {
			return ""
		}
		if remarkWeight(kind) > remarkWeight(found) {
			found = kind
		}
		words = words[n:]
	}
	return found
}

// remarkWeight orders the kinds: a comment of several phrases is of the kind with the highest weight. Fillers have none.
func remarkWeight(k state.Remark) int {
	switch k {
	case state.RemarkReaction:
		return 1
	case state.RemarkThanks:
		return 2
	case state.RemarkApproving:
		return 3
	}
	return 0
}

// filler is the kind of words that change nothing about a remark. Alone they are no remark.
const filler state.Remark = ""

// remarkPhrases returns the known phrases of each kind, in lower case and without punctuation. No phrase is of two kinds.
var remarkPhrases = sync.OnceValue(func() map[state.Remark][]string {
	return map[state.Remark][]string{
		state.RemarkThanks: {
			"thanks", "thank you", "thank u", "thx", "thnx", "tnx", "ty", "tysm", "cheers", "much appreciated", "appreciated", "appreciate it",
			"i appreciate it", "many thanks", "danke", "vielen dank", "danke schön", "merci", "merci beaucoup", "gracias", "muchas gracias", "grazie",
			"grazie mille", "obrigado", "obrigada", "muito obrigado", "bedankt", "dank je", "dank je wel", "tack", "takk", "kiitos", "dzięki",
			"dziękuję", "děkuji", "díky", "teşekkürler", "спасибо", "дякую", "谢谢", "謝謝", "ありがとう", "ありがとうございます", "감사합니다",
		},
		state.RemarkReaction: {
			"+1", emojiWord, "great", "nice", "awesome", "cool", "excellent", "wonderful", "amazing", "fantastic", "brilliant", "neat", "love it",
			"i love it", "well done", "good job", "great job", "nice job", "good work", "great work", "nice work", "good plan", "great plan",
			"nice plan", "excellent plan", "great stuff", "good stuff", "good one", "nice one", "good bot", "me too", "same here",
		},
		state.RemarkApproving: {
			"lgtm", "looks good", "look good", "looks great", "looks fine", "looks ok", "looks okay", "looks right", "looks perfect", "looks nice",
			"looks excellent", "sounds good", "sounds great", "sounds like a plan",
			"sounds fine", "sounds right", "sgtm", "ok", "okay", "k", "yes", "yep", "yeah", "yup",
			"sure", "go", "go ahead", "go for it", "go on", "ship it", "do it", "do that", "let's do it", "let's do this", "let's do that", "let's go ahead",
			"no objections", "that works", "let's go", "let's ship it",
			"lets do it", "lets go", "make it so", "proceed", "carry on", "start", "approve", "approved", "i approve", "i approve this", "agree", "agreed",
			"i agree", "fine", "perfect", "good", "good to go", "works for me", "fine by me", "fine with me", "ok with me", "ok by me", "okay with me",
			"good for me", "i like it", "i'm fine with it", "i'm ok with it", "i'm happy with it", "you can start", "you can go ahead",
			"you may start", "you may go ahead", "you can proceed",
		},
		filler: {
			"to me", "to us", "for me", "for us", "very much", "a lot", "so much", "very", "really", "all", "everyone", "everybody",
			"team", "folks", "guys", "mate", "again", "and", "then",
			"this", "that", "it", "the plan", "this plan", "plan", "with it", "with this", "with that", "please", "now", "so", "for this", "for that",
			"for it", "for the plan", "for the quick plan", "for the thorough plan", "for the detailed plan",
			"for taking care of this", "for taking care of it", "for taking care of that",
			"for the quick answer", "for the answer", "for your help", "for your work", "for the work",
			"for the update", "for the quick reply", "for the reply", "for looking", "for looking into this", "for looking into it", "for your answer",
			"for explaining", "for the explanation", "for the help", "the", "a", "as is", "from my side", "from my end", "on my end", "from me", "by me", "oh", "ah", "wow", "hi",
			"hello", "hey", "i think", mentionWord,
		},
	}
})

// longestPhrase returns the longest known phrase at the start of words, by its number of words; n is 0 if there is none.
func longestPhrase(words []string) (kind state.Remark, n int) {
	for k, phrases := range remarkPhrases() {
		for _, p := range phrases {
			parts := strings.Fields(p)
			if len(parts) > n && startsWith(words, parts) {
				kind, n = k, len(parts)
			}
		}
	}
	return kind, n
}

func startsWith(words, parts []string) bool {
	if len(words) < len(parts) {
		return false
	}
	for i, p := range parts {
		if words[i] != p {
			return false
		}
	}
	return true
}

// The words that stand for any emoji and for any mention, which no text contains itself.
const (
	emojiWord   = ":emoji:"
	mentionWord = "@mention"
)

// unknownWord is a word of no phrase: the text is a message.
const unknownWord = "?"

// remarkWords splits a text into words in lower case. Emoji and mentions become their placeholders, and punctuation that
// changes no meaning is left out. The text has at most maxRemark bytes.
func remarkWords(text string) []string {
	text = smileys.Replace(strings.ToLower(strings.NewReplacer("’", "'", "\u00a0", " ").Replace(text)))
	var words []string
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case unicode.IsSpace(r) || strings.ContainsRune(".,!;:…*_~()-–—\"'", r) || isInvisible(r):
			text = text[size:]
		case strings.HasPrefix(text, "+1") && (len(text) == 2 || !isWord(text[2])):
			words, text = append(words, "+1"), text[2:]
		case isEmoji(r):
			words, text = append(words, emojiWord), text[size:]
		case r == '@':
			n := len(text) - len(strings.TrimLeftFunc(text[1:], isNameRune))
			if n == 1 {
				return []string{unknownWord}
			}
			words, text = append(words, mentionWord), text[n:]
		case unicode.IsLetter(r):
			n := len(text) - len(strings.TrimLeftFunc(text,
				func(r rune) bool { return unicode.IsLetter(r) || r == '\'' || unicode.IsDigit(r) }))
			words, text = append(words, strings.TrimRight(text[:n], "'")), text[n:]
		default:
			return []string{unknownWord}
		}
	}
	return words
}

// smileys replaces typed smileys and GitHub's usual short names of emoji by an emoji.
var smileys = strings.NewReplacer(
	":-)", "🙂", ":)", "🙂", ";-)", "🙂", ";)", "🙂", ":-d", "🙂", "<3", "🙂", "&lt;3", "🙂",
	":+1:", "🙂", ":thumbsup:", "🙂", ":tada:", "🙂", ":heart:", "🙂", ":rocket:", "🙂", ":pray:", "🙂", ":raised_hands:", "🙂", ":ok_hand:", "🙂",
	":white_check_mark:", "🙂", ":100:", "🙂", ":clap:", "🙂", ":smile:", "🙂", ":smiley:", "🙂", ":slightly_smiling_face:", "🙂", ":fire:", "🙂",
	":sparkles:", "🙂", ":muscle:", "🙂", ":star:", "🙂", ":eyes:", "🙂", ":wave:", "🙂", ":joy:", "🙂", ":grin:", "🙂", ":laughing:", "🙂",
	":blush:", "🙂", ":wink:", "🙂", ":heart_eyes:", "🙂", ":sunglasses:", "🙂", ":partying_face:", "🙂", ":confetti_ball:", "🙂", ":hugs:", "🙂",
	":bow:", "🙂", ":handshake:", "🙂", ":shipit:", "🙂", ":heavy_check_mark:", "🙂", ":thinking:", "🙂", ":-1:", "🙂", ":thumbsdown:", "🙂",
	":blue_heart:", "🙂", ":green_heart:", "🙂", ":purple_heart:", "🙂",
)

// isInvisible reports whether a character has no shape of its own: joiners, marks of direction, variation selectors.
func isInvisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) || r == '\u20e3'
}

// isEmoji reports whether a character is a pictograph, or modifies one. Symbols that spell words, such as letters in circles
// and those of flags, are none, nor are question marks.
func isEmoji(r rune) bool {
	if r == '❓' || r == '❔' {
		return false
	}
	inBlock := 0x231a <= r && r <= 0x23ff || 0x25a0 <= r && r <= 0x27bf || 0x2b00 <= r && r <= 0x2bff || 0x1f300 <= r && r <= 0x1faff
	return inBlock && (unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r))
}

// isNameRune reports whether a character can be part of a login or of a team's name, as OWNER/TEAM or NAME[bot].
func isNameRune(r rune) bool {
	return r == '-' || r == '_' || r == '/' || r == '[' || r == ']' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// maxAddressees bounds the mentions at the start of a text that are read.
const maxAddressees = 50

// afterQuote returns the text after the quotations at its start. Lines up to the next empty one continue a quotation.
func afterQuote(text string) string {
	quoted := false
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, ">"):
			quoted = true
		case line == "":
			quoted = false
		case !quoted:
			return text
		}
		text = rest
	}
	return ""
}

// addressesOthers reports whether a text begins by addressing people other than the bot: a quotation to which it replies, and
// a greeting or "cc", if any, then their mentions. "@grace is right" is about a person and does not address her.
func addressesOthers(text, slug string) bool {
	rest := strings.TrimLeft(afterQuote(text), "/ ")
	for _, word := range []string{"hi", "hey", "hello", "cc", "ping", "fyi"} {
		if after, ok := cutWord(rest, word); ok {
			rest = strings.TrimLeft(after, ",:. \t")
			break
		}
	}
	people := 0
	for ; people < maxAddressees && strings.HasPrefix(rest, "@"); people++ {
		n := 1 + len(rest[1:]) - len(strings.TrimLeftFunc(rest[1:], isNameRune))
		name := rest[1:n]
		if name == "" || asciiLower(strings.TrimSuffix(asciiLower(name), "[bot]")) == asciiLower(slug) ||
			strings.HasPrefix(rest[n:], "'") || strings.HasPrefix(rest[n:], "’") {
			return false
		}
		rest = rest[n:]
		if next := strings.TrimLeft(rest, ",&+/ \t"); strings.HasPrefix(next, "@") {
			rest = next
		} else if after, ok := cutWord(next, "and"); ok && strings.HasPrefix(after, "@") {
			rest = after
		}
	}
	return people > 0 && !talksAbout(rest)
}

// talksAbout reports whether the text after a mention continues a sentence about that person.
func talksAbout(rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	for _, word := range []string{
		"is", "isn't", "was", "wasn't", "has", "had", "says", "said", "thinks", "thought", "wants", "wanted", "suggests", "suggested", "proposed",
		"proposes", "asks", "asked", "mentioned", "noted", "pointed", "wrote", "knows", "agrees", "agreed", "prefers", "preferred", "likes", "needs",
		"already", "also", "and", "or", "will", "would", "might", "should", "does", "doesn't", "did", "didn't", "made", "found", "told", "reported",
		"uses", "used", "owns", "maintains",
	} {
		after, ok := cutWord(rest, word)
		if !ok {
			continue
		}
		if next, _, _ := strings.Cut(strings.TrimSpace(after), " "); asciiLower(next) == "you" { // a question to the person
			return false
		}
		return true
	}
	return false
}
