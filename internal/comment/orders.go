package comment

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// Bounds of what people may ask for in one command.
const (
	maxTurns     = machine.MostTurns
	maxBudgetUSD = 1000
	maxChoice    = 9
	maxName      = 100
)

// reader makes an order of what follows a command's word: args on its line, tail on those below.
// It reports readNo if the words do not fit (so that they are a message), readWrong if they do but
// a value is out of bounds.
type reader func(args, tail string) (state.Order, verdict)

type verdict int

const (
	readNo verdict = iota
	readYes
	readWrong
)

var (
	hashWord   = regexp.MustCompile("^`?([0-9a-fA-F]{7,64})`?$")
	choiceWord = regexp.MustCompile(`^[1-9]$`)
	withWord   = regexp.MustCompile(`(?i)(?:^|[\s,])with:`)
	moneyWord  = regexp.MustCompile(`^\+? ?\$?(\d{1,12})(?:\.(\d{1,6}))?\$?$`)
	tokensWord = regexp.MustCompile(`(?i)^\+? ?(\d{1,12})(k|m)? ?tokens?$`)
	modelWord  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)
	keyWord    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*-[0-9]+$`)
	politeEnd  = regexp.MustCompile(`(?i)(?:[\s,]+(?:please|now|thanks|thank you))+[.!\s]*$`)
)

// polite takes away the courtesies at the end of a command: "stop, please!" is "stop".
func polite(s string) string {
	s = politeEnd.ReplaceAllString(s, "")
	return strings.TrimSpace(strings.TrimRight(s, ".! \t"))
}

func readBare(args, tail string) (state.Order, verdict) {
	if polite("x "+args) != "x" {
		return state.Order{}, readNo
	}
	return state.Order{Text: tail}, readYes
}

func readApprove(args, tail string) (state.Order, verdict) {
	var o state.Order
	head := args
	if at := withWord.FindStringIndex(args); at != nil {
		head, o.With = args[:at[0]], args[at[1]:]
	}
	o.With = strings.TrimSpace(o.With + "\n" + tail)
	for _, word := range strings.Fields(polite("x " + head))[1:] {
		word = strings.Trim(word, ",")
		switch {
		case o.Hash == "" && o.Choice == 0 && hashWord.MatchString(word):
			o.Hash = strings.ToLower(hashWord.FindStringSubmatch(word)[1])
		case o.Choice == 0 && choiceWord.MatchString(word):
			o.Choice = int(word[0] - '0')
		default:
			return state.Order{}, readNo
		}
	}
	return o, readYes
}

func readRetry(args, tail string) (state.Order, verdict) {
	o := state.Order{Text: tail}
	for _, word := range strings.Fields(polite("x " + strings.ToLower(args)))[1:] {
		turns, isTurns := strings.CutPrefix(word, "turns=")
		switch {
		case word == "fresh" && !o.Fresh:
			o.Fresh = true
		case isTurns && o.Turns == 0:
			n, err := strconv.Atoi(turns)
			if err != nil || n < 1 || n > maxTurns {
				return state.Order{}, readWrong
			}
			o.Turns = n
		default:
			return state.Order{}, readNo
		}
	}
	return o, readYes
}

func readReplan(args, tail string) (state.Order, verdict) {
	args = strings.TrimSpace(strings.TrimLeft(args, ":, \t"))
	if polite("x "+args) == "x" {
		args = ""
	}
	return state.Order{Text: strings.TrimSpace(args + "\n" + tail)}, readYes
}

func readBudget(args, tail string) (state.Order, verdict) {
	m := moneyWord.FindStringSubmatch(polite(args))
	if m == nil {
		return readTokens(args, tail)
	}
	whole, err := strconv.ParseInt(m[1], 10, 64)
	part, _ := strconv.ParseInt((m[2] + "000000")[:6], 10, 64)
	micro := whole*1_000_000 + part
	if err != nil || micro <= 0 || micro > maxBudgetUSD*1_000_000 {
		return state.Order{}, readWrong
	}
	return state.Order{MicroUSD: micro, Text: tail}, readYes
}

// maxBudgetTokens is the most that one command adds.
const maxBudgetTokens = 1_000_000_000

func readTokens(args, tail string) (state.Order, verdict) {
	m := tokensWord.FindStringSubmatch(polite(args))
	if m == nil {
		return state.Order{}, readNo
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	switch strings.ToLower(m[2]) {
	case "k":
		n *= 1000
	case "m":
		n *= 1_000_000
	}
	if err != nil || n <= 0 || n > maxBudgetTokens {
		return state.Order{}, readWrong
	}
	return state.Order{Tokens: n, Text: tail}, readYes
}

func readModel(args, tail string) (state.Order, verdict) {
	name := strings.Trim(args, "`")
	if !modelWord.MatchString(name) || len(name) > maxName {
		return state.Order{}, readNo
	}
	return state.Order{Arg: name, Text: tail}, readYes
}

func readCreatePR(args, tail string) (state.Order, verdict) {
	key := polite("x " + args)[1:]
	key = strings.TrimSpace(key)
	if key != "" && (!keyWord.MatchString(key) || len(key) > maxName) {
		return state.Order{}, readNo
	}
	return state.Order{Arg: key, Text: tail}, readYes
}

var issueWord = regexp.MustCompile(`^#?([1-9][0-9]?)$`)

func readIssue(args, tail string) (state.Order, verdict) {
	m := issueWord.FindStringSubmatch(strings.TrimSpace(polite("x " + args)[1:]))
	if m == nil {
		return state.Order{}, readNo
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n > state.MaxProposals {
		return state.Order{}, readWrong
	}
	return state.Order{Choice: n, Text: tail}, readYes
}

func readPlan(args, tail string) (state.Order, verdict) {
	rest := strings.Trim(polite("x " + args)[1:], ", \t")
	if rest == "" {
		return state.Order{Text: tail}, readYes
	}
	base := baseIn(rest)
	if base == "" || strings.TrimSpace(baseWord.ReplaceAllString(rest, "")) != "" {
		return state.Order{}, readNo
	}
	return state.Order{Arg: base, Text: tail}, readYes
}

// Print writes an order as a person would after the mention: Parse of "@slug " and the result gives
// the order back. Of VerbUnknown it prints what was written.
func Print(o state.Order) string {
	var args []string
	switch o.Verb {
	case state.VerbUnknown:
		return o.Text
	case state.VerbMessage:
		return printMessage(o)
	case state.VerbApprove:
		if o.Hash != "" {
			args = append(args, o.Hash)
		}
		if o.Choice != 0 {
			args = append(args, strconv.Itoa(o.Choice))
		}
		if o.With != "" {
			args = append(args, "with: "+o.With)
		}
	case state.VerbRetry:
		if o.Fresh {
			args = append(args, "fresh")
		}
		if o.Turns != 0 {
			args = append(args, "turns="+strconv.Itoa(o.Turns))
		}
	case state.VerbBudget:
		if o.Tokens > 0 {
			args = append(args, "+"+strconv.FormatInt(o.Tokens, 10), "tokens")
		} else {
			args = append(args, "+"+dollars(o.MicroUSD))
		}
	case state.VerbIssue:
		args = append(args, strconv.Itoa(o.Choice))
	case state.VerbPlan:
		if o.Arg != "" {
			args = append(args, "base: "+o.Arg)
		}
	default:
		if o.Arg != "" {
			args = append(args, o.Arg)
		}
	}
	s := strings.Join(append([]string{string(o.Verb)}, args...), " ")
	if o.Text != "" {
		s += "\n" + o.Text
	}
	return s
}

// printMessage prints free text; text that would be read as a command goes to the next line.
func printMessage(o state.Order) string {
	line, tail, _ := strings.Cut(o.Text, "\n")
	for _, onPR := range []bool{false, true} {
		again := readBlock(line, tail, onPR)
		if len(again) != 1 || again[0] != o || strings.TrimLeft(o.Text, " \t,:") != o.Text {
			return "\n" + o.Text
		}
	}
	return o.Text
}

// dollars prints millionths of a dollar exactly, without needless zeros: 5, 5.5, 0.000001.
func dollars(micro int64) string {
	s := strconv.FormatInt(micro/1_000_000, 10)
	if part := micro % 1_000_000; part != 0 {
		frac := strconv.FormatInt(part+1_000_000, 10)[1:]
		s += "." + strings.TrimRight(frac, "0")
	}
	return s
}
