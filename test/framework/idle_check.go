package framework

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/onsi/gomega"
)

// idlePeriod is a period in which a user must be idle. It starts with a call of [Env.ExpectIdle]; [Entries.during] describes its end.
type idlePeriod struct {
	user string
	from time.Time
}

// recordManagerStartStop records that a manager starts or stops.
func (e *Env) recordManagerStartStop() {
	e.managerStartStopTimes = append(e.managerStartStopTimes, e.now())
}

// checkIdle checks the requests of managers during the life of the control plane. An idle user must stay idle until another client writes
// or a manager starts or stops. An update or patch must change its object.
func (e *Env) checkIdle(context.Context) {
	if len(e.managers.accounts) == 0 {
		return
	}
	all, err := e.Audit().Since(0)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	for _, period := range e.idlePeriods {
		requests := UnexpectedWhenIdle(all.during(period, e.managerStartStopTimes), period.user)
		gomega.Expect(requests).To(gomega.BeEmpty(), "%s was idle and no other client wrote, but it sent:\n%s", period.user, requests)
	}
	unchanged := all.WithoutEvents().Unchanged().verbs("update", "patch").Where(func(entry Entry) bool {
		// The response to the removal of the last finalizer also has the previous resourceVersion.
		return !bytes.Contains(entry.Request, []byte(`"finalizers"`)) && !emptyPatch.Match(entry.Request) &&
			(entry.Responded.Before(e.PrunedPeriod.From) || entry.Received.After(e.PrunedPeriod.To)) &&
			slices.ContainsFunc(e.managers.accounts, func(a account) bool { return a.user == entry.User })
	})
	sameVersion := all.Where(func(entry Entry) bool {
		return slices.ContainsFunc(unchanged, func(u Entry) bool { return u.UID == entry.UID && u.ResourceVersion == entry.ResourceVersion })
	})
	gomega.Expect(unchanged).To(gomega.BeEmpty(), "writes without a change, with all writes of the same resourceVersion:\n%s", sameVersion)
}

// emptyPatch matches a patch without changes, which a manager sends to trigger admission or to check that its cache is current.
var emptyPatch = regexp.MustCompile(`^\s*\{"metadata":\{"resourceVersion":"[0-9]+"\}\}\s*$`)

// during returns the requests of a period, which ends when a manager starts or stops, or when a write of another client is received: a
// manager may react to the write before the response is logged. Writes of Leases and Events, and reviews, do not end the period.
func (e Entries) during(period idlePeriod, managerStartStopTimes []time.Time) Entries {
	requests := e.Where(func(entry Entry) bool { return entry.Responded.After(period.from) })
	var ends []time.Time
	if next := slices.IndexFunc(managerStartStopTimes, func(at time.Time) bool { return at.After(period.from) }); next >= 0 {
		ends = append(ends, managerStartStopTimes[next])
	}
	for _, write := range requests.WithoutLeases().WithoutEvents().WithoutReviews().Writes() {
		if write.User != period.user {
			ends = append(ends, write.Received)
		}
	}
	if len(ends) == 0 {
		return requests
	}
	end := slices.MinFunc(ends, time.Time.Compare)
	return requests.Where(func(entry Entry) bool { return entry.Received.Before(end) })
}
