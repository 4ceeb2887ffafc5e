package state

// Verb is the name of a command to errand.
type Verb string

// The verbs of the command table; internal/comment parses them.
const (
	VerbApprove  Verb = "approve"
	VerbCancel   Verb = "cancel"
	VerbStop     Verb = "stop"
	VerbRetry    Verb = "retry"
	VerbStatus   Verb = "status"
	VerbReplan   Verb = "replan"
	VerbBudget   Verb = "budget"
	VerbModel    Verb = "model"
	VerbCreatePR Verb = "create pr"
	VerbIssue    Verb = "create issue"
	VerbRestart  Verb = "restart"
	VerbUpdate   Verb = "update"
	VerbRebase   Verb = "rebase"
	VerbHelp     Verb = "help"
	VerbPlan     Verb = "plan"    // trigger words of a mention: plan, start, go
	VerbMessage  Verb = "message" // anything else: a message to the agent
	VerbUnknown  Verb = "unknown" // looks like a command; Arg has the nearest one
)

// Order is one command that a person gave.
type Order struct {
	Verb   Verb   `json:"verb"`
	Hash   string `json:"hash,omitempty"`   // approve
	Choice int    `json:"choice,omitempty"` // approve 2, create issue 2
	With   string `json:"with,omitempty"`   // approve with: …
	Fresh  bool   `json:"fresh,omitempty"`  // retry fresh
	Turns  int    `json:"turns,omitempty"`  // retry turns=60
	// MicroUSD is the addition by `budget +5`, in millionths of a US dollar, Tokens that by `budget +500k tokens`.
	MicroUSD int64  `json:"micro_usd,omitempty"`
	Tokens   int64  `json:"tokens,omitempty"`
	VMHours  int    `json:"vm_hours,omitempty"` // budget +12h
	Arg      string `json:"arg,omitempty"`      // model NAME, create pr KEY-123, the command nearest to an unknown word
	Text     string `json:"text,omitempty"`
	After    bool   `json:"after,omitempty"` // after: MESSAGE
}

// IsOperator reports whether this is the operator of errand, not an account on GitHub.
func (p Person) IsOperator() bool { return p.Operator && p.ID == 0 }

// Handle returns the person's login as GitHub writes it, or "the operator".
func (p Person) Handle() string {
	if p.IsOperator() {
		return "the operator"
	}
	return "@" + p.Login
}
