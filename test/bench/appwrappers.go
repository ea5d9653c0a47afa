package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// crowd is the namespace of many AppWrappers.
const crowd = "crowd"

// appWrappers runs many workloads of two pods to success and deletes them.
func (b *bench) appWrappers(ctx context.Context) error {
	if b.workloads == 0 {
		return nil
	}
	if err := b.newNamespace(ctx, crowd); err != nil {
		return err
	}
	begin, err := b.audit.Position()
	if err != nil {
		return err
	}
	start := b.clock.Now()
	for i := range b.workloads {
		if err := b.admin.Create(ctx, twoPods(i)); err != nil {
			return fmt.Errorf("creating an AppWrapper: %w", err)
		}
	}
	if err := b.untilAll(ctx, func(aw *awv1beta2.AppWrapper) bool { return aw.Status.Phase == awv1beta2.PhaseSucceeded }); err != nil {
		return err
	}
	took := b.clock.Since(start)
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	if err := b.noteRequests(fmt.Sprintf("%d AppWrappers of two pods to success, in %s", b.workloads, took.Round(time.Second)), b.workloads, begin, "<= 8 writes, 0 reads each"); err != nil {
		return err
	}
	rss, err := b.residentMemory()
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("resident memory with %d AppWrappers", b.workloads), mebibytes(rss), "", "")
	if begin, err = b.audit.Position(); err != nil {
		return err
	}
	if err := b.admin.DeleteAllOf(ctx, &awv1beta2.AppWrapper{}, client.InNamespace(crowd)); err != nil {
		return fmt.Errorf("deleting the AppWrappers: %w", err)
	}
	if err := b.untilAll(ctx, func(*awv1beta2.AppWrapper) bool { return false }); err != nil {
		return err
	}
	return b.noteRequests("deleting them", b.workloads, begin, "<= 6 writes, 4 reads each")
}

// twoPods returns an AppWrapper with a Job of two pods, which the test cluster completes immediately.
func twoPods(number int) *awv1beta2.AppWrapper {
	name := fmt.Sprintf("w%d", number)
	job := fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q},"spec":{"parallelism":2,"completions":2,
		"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"registry.example.com/step:1"}]}}}}`, name)
	return &awv1beta2.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: crowd, Name: name},
		Spec:       awv1beta2.AppWrapperSpec{Components: []awv1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: []byte(job)}}}},
	}
}

var errFailed = errors.New("an AppWrapper failed")

// untilAll waits until done returns true for every AppWrapper.
func (b *bench) untilAll(ctx context.Context, done func(*awv1beta2.AppWrapper) bool) error {
	return b.until(ctx, 50*poll, func() (bool, error) {
		list := &awv1beta2.AppWrapperList{}
		if err := b.admin.List(ctx, list, client.InNamespace(crowd)); err != nil {
			return false, fmt.Errorf("listing AppWrappers: %w", err)
		}
		for i := range list.Items {
			if list.Items[i].Status.Phase == awv1beta2.PhaseFailed || list.Items[i].Status.Retries > 0 {
				return false, fmt.Errorf("%w: %s: %+v", errFailed, list.Items[i].Name, list.Items[i].Status.LastFailure)
			}
			if !done(&list.Items[i]) {
				return false, nil
			}
		}
		return true, nil
	})
}

// noteRequests notes the requests of the manager per object since a position in the log.
func (b *bench) noteRequests(name string, objects int, since framework.AuditPosition, target string) error {
	entries, err := b.audit.Since(since)
	if err == nil {
		b.noteEntries(name, objects, entries, target)
	}
	return err
}

// noteEntries notes the requests of the manager per object among the entries.
func (b *bench) noteEntries(name string, objects int, entries framework.Entries, target string) {
	mine := entries.ByUser(b.manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
	b.printRequests(mine)
	each := func(count int) float64 { return float64(count) / float64(objects) }
	all := len(mine.Writes())
	events := all - len(mine.WithoutEvents().Writes())
	b.note(name, fmt.Sprintf("%.2f writes and %.2f events, %.2f live reads each", each(all-events), each(events), each(len(mine.Reads()))), target, "")
}
