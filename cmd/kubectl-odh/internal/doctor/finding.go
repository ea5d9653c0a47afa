package doctor

import "cmp"

// Result is the outcome of a check.
type Result string

// Results, from bad to good.
const (
	Fail    Result = "fail"
	Warn    Result = "warn"
	Unknown Result = "unknown"
	OK      Result = "ok"
)

var rank = map[Result]int{Fail: 0, Warn: 1, Unknown: 2, OK: 3}

// Finding is one thing that a check found.
type Finding struct {
	// Check is the name of the check.
	Check  string `json:"check"`
	Result Result `json:"result"`
	// Subject is what it is about; empty where that is the cluster as a whole.
	Subject string `json:"subject,omitempty"`
	// Found is what is there, Why what follows from it, Cure a command or a step that mends it.
	Found string `json:"found"`
	Why   string `json:"why,omitempty"`
	Cure  string `json:"cure,omitempty"`
}

// byResult orders findings from bad to good and leaves their order otherwise.
func byResult(a, b Finding) int { return cmp.Compare(rank[a.Result], rank[b.Result]) }

// fine is a finding that needs no cure.
func fine(subject, found string) Finding { return Finding{Result: OK, Subject: subject, Found: found} }

// unread is the finding of a check whose facts could not be read.
func unread(gap Gap) Finding {
	f := Finding{Result: Unknown, Subject: gap.What, Found: "could not be read: " + gap.Reason, Cure: "try again; kubectl get --raw /readyz?verbose tells how the API server is"}
	if gap.Right != "" {
		f.Found, f.Cure = "may not be read", "ask an administrator for the right to "+gap.Right
	}
	return f
}
