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

// appWrapperNamespace is the namespace of the AppWrappers.
const appWrapperNamespace = "many-appwrappers"

// measureAppWrappers runs many workloads of two pods to success and deletes them.
func (b *bench) measureAppWrappers(ctx context.Context) error {
	if b.appWrappers == 0 {
		return nil
	}
	if err := b.newNamespace(ctx, appWrapperNamespace); err != nil {
		return err
	}
	begin, err := b.audit.Position()
	if err != nil {
		return err
	}
	start := b.clock.Now()
	for i := range b.appWrappers {
		if err := b.admin.Create(ctx, newAppWrapper(i)); err != nil {
			return fmt.Errorf("creating an AppWrapper: %w", err)
		}
	}
	if err := b.waitAppWrappers(ctx, func(aw *awv1beta2.AppWrapper) bool { return aw.Status.Phase == awv1beta2.PhaseSucceeded }); err != nil {
		return err
	}
	took := b.clock.Since(start)
	if err := b.waitIdle(ctx); err != nil {
		return err
	}
	if err := b.addRequestsSince(fmt.Sprintf("%d AppWrappers of two pods to success, in %s", b.appWrappers, took.Round(time.Second)), b.appWrappers, begin, "<= 8 writes, 0 reads each"); err != nil {
		return err
	}
	rss, err := b.residentMemory()
	if err != nil {
		return err
	}
	b.addFigure(fmt.Sprintf("resident memory with %d AppWrappers", b.appWrappers), mebibytes(rss), "", "")
	if begin, err = b.audit.Position(); err != nil {
		return err
	}
	if err := b.admin.DeleteAllOf(ctx, &awv1beta2.AppWrapper{}, client.InNamespace(appWrapperNamespace)); err != nil {
		return fmt.Errorf("deleting the AppWrappers: %w", err)
	}
	if err := b.waitAppWrappers(ctx, func(*awv1beta2.AppWrapper) bool { return false }); err != nil {
		return err
	}
	return b.addRequestsSince("deleting them", b.appWrappers, begin, "<= 6 writes, 4 reads each")
}

// newAppWrapper returns an AppWrapper with a Job of two pods, which kwok completes immediately.
func newAppWrapper(number int) *awv1beta2.AppWrapper {
	name := fmt.Sprintf("w%d", number)
	job := fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":%q},"spec":{"parallelism":2,"completions":2,
		"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"registry.example.com/step:1"}]}}}}`, name)
	return &awv1beta2.AppWrapper{
		ObjectMeta: metav1.ObjectMeta{Namespace: appWrapperNamespace, Name: name},
		Spec:       awv1beta2.AppWrapperSpec{Components: []awv1beta2.AppWrapperComponent{{Template: runtime.RawExtension{Raw: []byte(job)}}}},
	}
}

var errFailed = errors.New("an AppWrapper failed")

// waitAppWrappers waits until done returns true for every AppWrapper. It returns an error if one has failed or was retried.
func (b *bench) waitAppWrappers(ctx context.Context, done func(*awv1beta2.AppWrapper) bool) error {
	return b.waitUntil(ctx, 50*pollInterval, func() (bool, error) {
		list := &awv1beta2.AppWrapperList{}
		if err := b.admin.List(ctx, list, client.InNamespace(appWrapperNamespace)); err != nil {
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

// addRequestsSince adds the requests of the manager per object since a position in the log.
func (b *bench) addRequestsSince(name string, objects int, since framework.AuditPosition, target string) error {
	entries, err := b.audit.Since(since)
	if err == nil {
		b.addRequests(name, objects, entries, target)
	}
	return err
}

// addRequests adds the requests of the manager per object among the entries.
func (b *bench) addRequests(name string, objects int, entries framework.Entries, target string) {
	sent := entries.ByUser(b.manager.User).WithoutLeases().WithoutReviews().WithoutDiscovery()
	b.printRequests(sent)
	each := func(count int) float64 { return float64(count) / float64(objects) }
	all := len(sent.Writes())
	events := all - len(sent.WithoutEvents().Writes())
	b.addFigure(name, fmt.Sprintf("%.2f writes and %.2f events, %.2f live reads each", each(all-events), each(events), each(len(sent.Reads()))), target, "")
}
