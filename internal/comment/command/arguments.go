package command

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// Limits on the arguments of one command. MaxChoice is the highest number of an approach.
const (
	maxTurns     = machine.MaxRetryTurns
	maxBudgetUSD = 1000
	MaxChoice    = 9
	maxName      = 100
)

// argumentReader parses the text after a command's name: args is the rest of its line, tail the lines below.
type argumentReader func(args, tail string) (state.Order, match)

// match is the result of parsing arguments.
type match int

const (
	noMatch     match = iota // not the command's syntax, so the text is a message
	matched                  // a valid command
	outOfBounds              // the command's syntax with a value outside of its limits
)

var (
	hashWord   = regexp.MustCompile("^`?([0-9a-fA-F]{7,64})`?$")
	choiceWord = regexp.MustCompile(`^[1-9]$`)
	withWord   = regexp.MustCompile(`(?i)(?:^|[\s,])with:`)
	moneyWord  = regexp.MustCompile(`^\+? ?\$?(\d{1,12})(?:\.(\d{1,6}))?\$?$`)
	hoursWord  = regexp.MustCompile(`(?i)^\+? ?(\d{1,4}) ?(?:h|(?:vm )?hours?)$`)
	tokensWord = regexp.MustCompile(`(?i)^\+? ?(\d{1,12})(k|m)? ?tokens?$`)
	modelWord  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)
	keyWord    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*-[0-9]+$`)
	politeEnd  = regexp.MustCompile(`(?i)(?:[\s,]+(?:please|now|thanks|thank you))+[.!\s]*$`)
)

// trimCourtesy removes courtesies from the end of a command: "stop, please!" becomes "stop".
func trimCourtesy(s string) string {
	s = politeEnd.ReplaceAllString(s, "")
	return strings.TrimSpace(strings.TrimRight(s, ".! \t"))
}

func readNothing(args, tail string) (state.Order, match) {
	if trimCourtesy("x "+args) != "x" {
		return state.Order{}, noMatch
	}
	return state.Order{Text: tail}, matched
}

func readApproval(args, tail string) (state.Order, match) {
	var o state.Order
	head := args
	if at := withWord.FindStringIndex(args); at != nil {
		head, o.With = args[:at[0]], args[at[1]:]
	}
	if o.With == "" && ClassifyRemark(tail, "") != state.RemarkToOthers && ClassifyRemark(tail, "") != "" {
		tail = "" // thanks below the command are no condition
	}
	o.With = strings.TrimSpace(o.With + "\n" + tail)
	for _, word := range strings.Fields(trimCourtesy("x " + head))[1:] {
		word = strings.Trim(word, ",")
		switch {
		case o.Hash == "" && o.Choice == 0 && hashWord.MatchString(word):
			o.Hash = strings.ToLower(hashWord.FindStringSubmatch(word)[1])
		case o.Choice == 0 && choiceWord.MatchString(word):
			o.Choice = int(word[0] - '0')
		default:
			return state.Order{}, noMatch
		}
	}
	return o, matched
}

func readRetry(args, tail string) (state.Order, match) {
	o := state.Order{Text: tail}
	for _, word := range strings.Fields(trimCourtesy("x " + strings.ToLower(args)))[1:] {
		turns, isTurns := strings.CutPrefix(word, "turns=")
		switch {
		case word == "fresh" && !o.Fresh:
			o.Fresh = true
		case isTurns && o.Turns == 0:
			n, err := strconv.Atoi(turns)
			if err != nil || n < 1 || n > maxTurns {
				return state.Order{}, outOfBounds
			}
			o.Turns = n
		default:
			return state.Order{}, noMatch
		}
	}
	return o, matched
}

func readReplan(args, tail string) (state.Order, match) {
	args = strings.TrimSpace(strings.TrimLeft(args, ":, \t"))
	if trimCourtesy("x "+args) == "x" {
		args = ""
	}
	return state.Order{Text: strings.TrimSpace(args + "\n" + tail)}, matched
}

func readBudget(args, tail string) (state.Order, match) {
	m := moneyWord.FindStringSubmatch(trimCourtesy(args))
	if m == nil {
		return readHours(args, tail)
	}
	whole, err := strconv.ParseInt(m[1], 10, 64)
	part, _ := strconv.ParseInt((m[2] + "000000")[:6], 10, 64)
	micro := whole*1_000_000 + part
	if err != nil || micro <= 0 || micro > maxBudgetUSD*1_000_000 {
		return state.Order{}, outOfBounds
	}
	return state.Order{MicroUSD: micro, Text: tail}, matched
}

// maxBudgetHours is the limit on the VM hours that one command adds.
const maxBudgetHours = 1000

func readHours(args, tail string) (state.Order, match) {
	m := hoursWord.FindStringSubmatch(trimCourtesy(args))
	if m == nil {
		return readTokens(args, tail)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n <= 0 || n > maxBudgetHours {
		return state.Order{}, outOfBounds
	}
	return state.Order{VMHours: n, Text: tail}, matched
}

// maxBudgetTokens is the limit on the tokens that one command adds.
const maxBudgetTokens = 1_000_000_000

func readTokens(args, tail string) (state.Order, match) {
	m := tokensWord.FindStringSubmatch(trimCourtesy(args))
	if m == nil {
		return state.Order{}, noMatch
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	switch strings.ToLower(m[2]) {
	case "k":
		n *= 1000
	case "m":
		n *= 1_000_000
	}
	if err != nil || n <= 0 || n > maxBudgetTokens {
		return state.Order{}, outOfBounds
	}
	return state.Order{Tokens: n, Text: tail}, matched
}

func readModel(args, tail string) (state.Order, match) {
	name := strings.Trim(args, "`")
	if !modelWord.MatchString(name) || len(name) > maxName {
		return state.Order{}, noMatch
	}
	return state.Order{Arg: name, Text: tail}, matched
}

func readTicket(args, tail string) (state.Order, match) {
	key := trimCourtesy("x " + args)[1:]
	key = strings.TrimSpace(key)
	if key != "" && (!keyWord.MatchString(key) || len(key) > maxName) {
		return state.Order{}, noMatch
	}
	return state.Order{Arg: key, Text: tail}, matched
}

// readAfter reads a message that waits for the end of the run. Without a colon, "after" is a word of another message.
func readAfter(args, tail string) (state.Order, match) {
	text, ok := strings.CutPrefix(args, ":")
	if !ok {
		return state.Order{}, noMatch
	}
	text = strings.TrimSpace(text + "\n" + tail)
	if text == "" {
		return state.Order{}, outOfBounds
	}
	return state.Order{Text: text, After: true}, matched
}

var issueWord = regexp.MustCompile(`^#?([1-9][0-9]?)$`)

func readChoice(args, tail string) (state.Order, match) {
	m := issueWord.FindStringSubmatch(strings.TrimSpace(trimCourtesy("x " + args)[1:]))
	if m == nil {
		return state.Order{}, noMatch
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n > state.MaxProposals {
		return state.Order{}, outOfBounds
	}
	return state.Order{Choice: n, Text: tail}, matched
}

func readPlan(args, tail string) (state.Order, match) {
	rest := strings.Trim(trimCourtesy("x " + args)[1:], ", \t")
	if rest == "" {
		return state.Order{Text: tail}, matched
	}
	base := baseIn(rest)
	if base == "" || strings.TrimSpace(baseWord.ReplaceAllString(rest, "")) != "" {
		return state.Order{}, noMatch
	}
	return state.Order{Arg: base, Text: tail}, matched
}

func formatPlan(o state.Order) []string {
	if o.Arg == "" {
		return nil
	}
	return []string{"base: " + o.Arg}
}

func formatApproval(o state.Order) []string {
	var args []string
	if o.Hash != "" {
		args = append(args, o.Hash)
	}
	if o.Choice != 0 {
		args = append(args, strconv.Itoa(o.Choice))
	}
	if o.With != "" {
		args = append(args, "with: "+o.With)
	}
	return args
}

func formatRetry(o state.Order) []string {
	var args []string
	if o.Fresh {
		args = append(args, "fresh")
	}
	if o.Turns != 0 {
		args = append(args, "turns="+strconv.Itoa(o.Turns))
	}
	return args
}

func formatBudget(o state.Order) []string {
	if o.VMHours > 0 {
		return []string{"+" + strconv.Itoa(o.VMHours) + "h"}
	}
	if o.Tokens > 0 {
		return []string{"+" + strconv.FormatInt(o.Tokens, 10), "tokens"}
	}
	return []string{"+" + dollars(o.MicroUSD)}
}

func formatChoice(o state.Order) []string { return []string{strconv.Itoa(o.Choice)} }

// dollars formats millionths of a dollar exactly, without trailing zeros: 5, 5.5, 0.000001.
func dollars(micro int64) string {
	s := strconv.FormatInt(micro/1_000_000, 10)
	if part := micro % 1_000_000; part != 0 {
		frac := strconv.FormatInt(part+1_000_000, 10)[1:]
		s += "." + strings.TrimRight(frac, "0")
	}
	return s
}
