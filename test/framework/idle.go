package framework

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

const idlePoll = 250 * time.Millisecond

// AuditPosition returns the current end of the audit log.
func (e *Env) AuditPosition() AuditPosition {
	ginkgo.GinkgoHelper()
	start, err := e.Audit().Position()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return start
}

// Since returns the requests logged after a position.
func (e *Env) Since(start AuditPosition) Entries {
	ginkgo.GinkgoHelper()
	entries, err := e.Audit().Since(start)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return entries
}

// UnexpectedWhenIdle returns the requests of a user that an idle manager must not send: writes and live reads, except of leases, reviews, discovery
// and updates of event series.
func UnexpectedWhenIdle(entries Entries, user string) Entries {
	requests := entries.ByUser(user).WithoutLeases().WithoutReviews().WithoutDiscovery().withoutEventSeries()
	return append(requests.Writes(), requests.Reads()...)
}

// withoutEventSeries drops the patches with which the event recorder updates the count of a repeated Event. Creations of Events remain.
func (e Entries) withoutEventSeries() Entries {
	return e.Where(func(entry Entry) bool { return entry.Resource != "events" || entry.Verb != "patch" })
}

// ExpectNoWrites fails the spec if the user sends a write during the duration, other than to a Lease, a review or an Event series.
func (e *Env) ExpectNoWrites(user string, duration time.Duration) {
	ginkgo.GinkgoHelper()
	start := e.AuditPosition()
	gomega.Consistently(func(g gomega.Gomega) {
		entries, err := e.Audit().Since(start)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		writes := entries.ByUser(user).WithoutLeases().WithoutReviews().withoutEventSeries().Writes()
		g.Expect(writes).To(gomega.BeEmpty(), "unexpected writes:\n%s", writes)
	}).WithTimeout(duration).WithPolling(idlePoll).Should(gomega.Succeed())
}

// ExpectIdle fails the spec if the user sends a write or a live read during the duration, see [UnexpectedWhenIdle]. The end of the suite
// checks that the user stayed idle until another client wrote, or a manager started or stopped.
func (e *Env) ExpectIdle(user string, duration time.Duration) {
	ginkgo.GinkgoHelper()
	start := e.AuditPosition()
	e.idlePeriods = append(e.idlePeriods, idlePeriod{user: user, from: e.now()})
	gomega.Consistently(func(g gomega.Gomega) {
		entries, err := e.Audit().Since(start)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		requests := UnexpectedWhenIdle(entries, user)
		g.Expect(requests).To(gomega.BeEmpty(), "unexpected requests:\n%s", requests)
	}).WithTimeout(duration).WithPolling(idlePoll).Should(gomega.Succeed())
}

// WaitIdle waits until the user has sent no write and no live read for the duration, at most for the timeout.
func (e *Env) WaitIdle(user string, duration, timeout time.Duration) {
	ginkgo.GinkgoHelper()
	start, since := e.AuditPosition(), e.now()
	gomega.Eventually(func(g gomega.Gomega) {
		entries, err := e.Audit().Since(start)
		g.Expect(err).NotTo(gomega.HaveOccurred())
		requests := UnexpectedWhenIdle(entries, user)
		if len(requests) > 0 {
			since = e.now()
			start, err = e.Audit().Position()
			g.Expect(err).NotTo(gomega.HaveOccurred())
		}
		g.Expect(e.now().Sub(since)).To(gomega.BeNumerically(">=", duration), "not idle:\n%s", requests)
	}).WithTimeout(timeout).WithPolling(idlePoll).Should(gomega.Succeed())
}

// WaitNoRequests waits until none of the given requests was sent for the duration, at most for the timeout. Use it in suites whose specs
// share a manager.
func (e *Env) WaitNoRequests(ctx context.Context, requests func(AuditPosition) Entries, duration, timeout time.Duration) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(func(g gomega.Gomega) {
		start := e.AuditPosition()
		g.Consistently(func() Entries { return requests(start) }).WithContext(ctx).WithTimeout(duration).WithPolling(idlePoll).Should(gomega.BeEmpty())
	}).WithContext(ctx).WithTimeout(timeout).Should(gomega.Succeed())
}

// RequestsIn returns a function for [Env.WaitNoRequests] and [Env.ExpectNoRequests]. It returns the requests of a user in a namespace that an
// idle manager must not send.
func (e *Env) RequestsIn(user, namespace string) func(AuditPosition) Entries {
	return func(start AuditPosition) Entries {
		return UnexpectedWhenIdle(e.Since(start), user).Where(func(entry Entry) bool { return entry.Namespace == namespace })
	}
}

// ExpectNoRequests fails the spec if one of the given requests is sent during the duration.
func (e *Env) ExpectNoRequests(requests func(AuditPosition) Entries, duration time.Duration) {
	ginkgo.GinkgoHelper()
	start := e.AuditPosition()
	gomega.Consistently(func() Entries { return requests(start) }).WithTimeout(duration).WithPolling(idlePoll).Should(gomega.BeEmpty())
}

func (e *Env) now() time.Time { return e.clock.Now() }
