package command

import (
	"strings"

	"github.com/errand-bot/errand/state"
)

// Format returns an order as a person would write it after the mention: [Parse] of "@slug " and the result returns the same
// order. For VerbUnknown it returns the text that was written.
func Format(o state.Order) string {
	switch o.Verb {
	case state.VerbUnknown:
		return o.Text
	case state.VerbMessage:
		return formatMessage(o)
	}
	parts := append([]string{string(o.Verb)}, formatArguments(o)...)
	s := strings.Join(parts, " ")
	if o.Text != "" {
		s += "\n" + o.Text
	}
	return s
}

// formatArguments returns the arguments of a command.
func formatArguments(o state.Order) []string {
	if e := entryOf(o.Verb); e.format != nil {
		return e.format(o)
	}
	if o.Arg == "" {
		return nil
	}
	return []string{o.Arg}
}

// formatMessage returns a message. Text that would be read as a command begins on the next line.
func formatMessage(o state.Order) string {
	if o.After {
		return "after: " + o.Text
	}
	line, tail, _ := strings.Cut(o.Text, "\n")
	for _, onPR := range []bool{false, true} {
		again := readOrders(line, tail, onPR)
		if len(again) != 1 || again[0] != o || strings.TrimLeft(o.Text, " \t,:") != o.Text {
			return "\n" + o.Text
		}
	}
	return o.Text
}
