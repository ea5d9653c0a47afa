package framework

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/onsi/gomega"
)

// resting is a time from which a user must send nothing, until a request or process that may cause work, see [Env.disturbed].
type resting struct {
	user string
	from time.Time
}

// recordDisturbance records that a manager starts or ends.
func (e *Env) recordDisturbance() { e.disturbances = append(e.disturbances, e.now()) }

// checkRest checks all requests of managers during the life of the control plane: an idle user stays idle until another client writes,
// and no write leaves its object unchanged.
func (e *Env) checkRest(context.Context) {
	if len(e.watched.accounts) == 0 {
		return
	}
	all, err := e.Audit().Since(0)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for _, r := range e.rests {
		requests := UnexpectedWhenIdle(all.during(r, e.disturbances), r.user)
		gomega.Expect(requests).To(gomega.BeEmpty(), "%s was at rest, no other client wrote, and it sent:\n%s", r.user, requests)
	}
	unchanged := all.WithoutEvents().Unchanged().verbs("update", "patch").Where(func(entry Entry) bool {
		// The response to the removal of the last finalizer has the old resourceVersion too.
		return !bytes.Contains(entry.Request, []byte(`"finalizers"`)) && !onlyVersion.Match(entry.Request) &&
			(entry.At.Before(e.Unstored.From) || entry.Received.After(e.Unstored.To)) &&
			slices.ContainsFunc(e.watched.accounts, func(a account) bool { return a.user == entry.User })
	})
	before := all.Where(func(entry Entry) bool {
		return slices.ContainsFunc(unchanged, func(u Entry) bool { return u.UID == entry.UID && u.ResourceVersion == entry.ResourceVersion })
	})
	gomega.Expect(unchanged).To(gomega.BeEmpty(), "writes that changed nothing, with those of the same version:\n%s", before)
}

// onlyVersion is a patch without changes, which runs admission or checks that the cache is current.
var onlyVersion = regexp.MustCompile(`^\s*\{"metadata":\{"resourceVersion":"[0-9]+"\}\}\s*$`)

// during returns the entries that arrived before the next disturbance and the next write of another client. A manager may react to that
// write before the log has its response. Leases and Events cause no work.
func (e Entries) during(r resting, disturbances []time.Time) Entries {
	rest := e.Where(func(entry Entry) bool { return entry.At.After(r.from) })
	var ends []time.Time
	if next := slices.IndexFunc(disturbances, func(at time.Time) bool { return at.After(r.from) }); next >= 0 {
		ends = append(ends, disturbances[next])
	}
	for _, write := range rest.WithoutLeases().WithoutEvents().WithoutReviews().Writes() {
		if write.User != r.user {
			ends = append(ends, write.Received)
		}
	}
	if len(ends) == 0 {
		return rest
	}
	end := slices.MinFunc(ends, time.Time.Compare)
	return rest.Where(func(entry Entry) bool { return entry.Received.Before(end) })
}
