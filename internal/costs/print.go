package costs

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/errand-bot/errand/internal/words"
)

// tableColumns returns the columns of a table of outcomes.
func tableColumns() []string {
	return []string{"Policy", "Cost", "Compared with the first", "VM hours", "Resumptions", "Median", "95th percentile", "Most VMs at a time", "Most hours of a task"}
}

// cells returns one row of it.
func (o Outcome) cells(first Outcome) []string {
	more := "–"
	if base := first.Bill.Micro(); base > 0 && o != first {
		more = formatDifference(o.Bill.Micro(), base)
	}
	half, most := "–", "–"
	if o.Wakes > 0 {
		half, most = words.ExactSpan(o.At50), words.ExactSpan(o.At95)
	}
	return []string{
		o.Policy, Amount(o.Bill.Micro(), o.Bill.Currency), more, fmt.Sprint(o.Bill.Hours),
		fmt.Sprint(o.Wakes), half, most, fmt.Sprint(o.Most), fmt.Sprint(o.TaskHours),
	}
}

// formatDifference formats the difference between a and b.
func formatDifference(a, b int64) string {
	switch p := 100 * float64(a-b) / float64(b); {
	case p <= -0.05:
		return fmt.Sprintf("−%.1f %%", -p)
	case p >= 200:
		return fmt.Sprintf("%.0f times", float64(a)/float64(b))
	case p >= 0.05:
		return fmt.Sprintf("+%.1f %%", p)
	}
	return "the same"
}

// Amount formats millionths of a currency.
func Amount(micro int64, currency string) string {
	sign := currency + " "
	switch currency {
	case "EUR":
		sign = "€"
	case "USD":
		sign = "$"
	case "":
		sign = ""
	}
	return fmt.Sprintf("%s%.2f", sign, float64(micro)/1e6)
}

// Print writes outcomes as a table. The first outcome is the baseline.
func Print(w io.Writer, outcomes []Outcome) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, strings.Join(tableColumns(), "\t")) // Flush returns write errors
	for _, o := range outcomes {
		_, _ = fmt.Fprintln(t, strings.Join(o.cells(outcomes[0]), "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the outcomes: %w", err)
	}
	return nil
}

// Sum adds the outcomes of the same policies on several traces. Delays and other maximums are the largest of all.
func Sum(all ...[]Outcome) []Outcome {
	var sum []Outcome
	for _, outcomes := range all {
		for i, o := range outcomes {
			if i == len(sum) {
				sum = append(sum, Outcome{Policy: o.Policy, Bill: Bill{Currency: o.Bill.Currency}})
			}
			s := &sum[i]
			s.Bill.Hours += o.Bill.Hours
			s.Bill.MicroVMs += o.Bill.MicroVMs
			s.Bill.MicroImages += o.Bill.MicroImages
			s.Wakes += o.Wakes
			s.VMs += o.VMs
			s.At50, s.At95 = max(s.At50, o.At50), max(s.At95, o.At95)
			s.Most, s.TaskHours = max(s.Most, o.Most), max(s.TaskHours, o.TaskHours)
		}
	}
	return sum
}
