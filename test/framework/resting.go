package framework

import (
	"bytes"
	"context"
	"slices"

	"github.com/onsi/gomega"
)

// resting is a part of the audit log in which a user must be silent: from a mark until the first request or process that could give it
// work, see [Env.disturbed].
type resting struct {
	user string
	from Mark
}

// disturbed notes that a manager starts or ends at this place of the audit log.
func (e *Env) disturbed() {
	if mark, err := e.Audit().Mark(); err == nil { // without a log nothing is checked
		e.disturbances = append(e.disturbances, mark)
	}
}

// checkRest holds what managers sent during the whole life of the control plane against two promises. A user whom a spec found at rest
// stays at rest until another client writes; specs look only for a moment. And no manager sends a write that changes nothing.
func (e *Env) checkRest(context.Context) {
	for _, r := range e.rests {
		entries, err := e.Audit().read(r.from, e.nextDisturbance(r.from))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		requests := AtRest(entries.untilOthersWrite(r.user), r.user)
		gomega.Expect(requests).To(gomega.BeEmpty(), "%s was at rest, no other client wrote, and it sent:\n%s", r.user, requests)
	}
	if len(e.watched.accounts) == 0 {
		return
	}
	all, err := e.Audit().Since(0)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	unchanged := all.WithoutEvents().Unchanged().verbs("update", "patch").Where(func(entry Entry) bool {
		// The answer to the removal of the last finalizer bears the old resourceVersion too.
		return !bytes.Contains(entry.Request, []byte(`"finalizers"`)) &&
			slices.ContainsFunc(e.watched.accounts, func(a account) bool { return a.user == entry.User })
	})
	gomega.Expect(unchanged).To(gomega.BeEmpty(), "writes that changed nothing:\n%s", unchanged)
}

// nextDisturbance returns the first disturbance after a mark, or a mark behind the log.
func (e *Env) nextDisturbance(from Mark) Mark {
	for _, mark := range e.disturbances {
		if mark >= from {
			return mark
		}
	}
	return endOfLog
}

// untilOthersWrite returns the entries before the first write of another client than the user. Leases and Events cause no work.
func (e Entries) untilOthersWrite(user string) Entries {
	others := func(entry Entry) bool {
		return entry.User != user && len(Entries{entry}.WithoutLeases().WithoutEvents().WithoutReviews().Writes()) > 0
	}
	if end := slices.IndexFunc(e, others); end >= 0 {
		return e[:end]
	}
	return e
}
