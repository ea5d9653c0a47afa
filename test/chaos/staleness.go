package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// cacheDelay is the maximum delay of the events of a stale cache.
const cacheDelay = 8 * time.Second

// stalenessScenarios returns faults of stale caches and of API servers that return past states.
func stalenessScenarios() []scenario {
	late := func(name, subject, resource string) scenario {
		return scenario{name: name, standalone: true, run: func(c *campaign, ctx context.Context) error { return c.delayCache(ctx, name, subject, resource) }}
	}
	past := func(name, subject, resource string, deleted bool) scenario {
		return scenario{name: name, standalone: true, run: func(c *campaign, ctx context.Context) error {
			return c.timeTravel(ctx, name, subject, resource, deleted)
		}}
	}
	return []scenario{
		late("late-jobs-mlflow", "mlflow", "jobs"), late("late-deployments-mlflow", "mlflow", "deployments"), late("late-mlflows", "mlflow", "mlflows"),
		late("late-jobs-appwrapper", "appwrapperjob", "jobs"), late("late-appwrappers", "appwrapperjob", "appwrappers"),
		late("late-registries", "registry", "modelregistries"), late("late-secrets", "registry", "secrets"), late("late-claims", "registry", "persistentvolumeclaims"),
		late("late-catalogs", "catalog", "catalogs"), late("late-secrets-catalog", "catalog", "secrets"),
		late("late-rayclusters", "raycluster", "rayclusters"), late("late-secrets-raycluster", "raycluster", "secrets"),
		late("late-predictors", "predictor", "predictors"),
		past("past-deleted-registry", "registry", "modelregistries", true), past("past-unknown-appwrapper", "appwrapperjob", "appwrappers", false),
		past("past-deleted-mlflow", "mlflow", "mlflows", true), past("past-deleted-catalog", "catalog", "catalogs", true),
		past("past-deleted-appwrapper", "appwrapper", "appwrappers", true), past("past-deleted-raycluster", "raycluster", "rayclusters", true),
		past("past-deleted-predictor", "predictor", "predictors", true),
	}
}

// withSingleResource runs a scenario with a single custom resource in place of a population, and deletes it afterwards.
func (c *campaign) withSingleResource(ctx context.Context, subject, scenario string, run func(*fixture) error) error {
	s, err := subjectNamed(subject)
	if err != nil {
		return err
	}
	f, err := s.fixture("chaos-" + scenario)
	if err != nil {
		return err
	}
	err = run(f)
	one := &sieve{campaign: c}
	return errors.Join(err, f.remove(ctx, c.testCluster), c.waitUntil(ctx, waitTimeout, func() (string, error) { return f.existsReason(ctx, c.testCluster) }), one.deleteLeftovers(ctx, []*fixture{f}))
}

var errUnknown = errors.New("there is no such subject")

// delayCache delays the watch events of a resource while a custom resource is created, deleted and created again.
func (c *campaign) delayCache(ctx context.Context, name, subject, resource string) error {
	return c.withSingleResource(ctx, subject, name, func(f *fixture) error {
		start, err := c.audit.Position()
		if err != nil {
			return err
		}
		hits := c.proxy.hitCount()
		// Delayed batches of events simulate a cache that is always stale.
		batches, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for batches.Err() == nil {
				removeRule := c.proxy.addRule(rule{match: watches(resource), streams: true})
				_ = c.pause(batches, cacheDelay) // ends with the context
				removeRule()
			}
		}()
		err = c.recreateEarly(ctx, f)
		stop()
		<-done
		if err != nil {
			return err
		}
		r := row{Scenario: name, Fault: fmt.Sprintf("%s of %s are seen up to %s late at creation, deletion and creation again", resource, subject, cacheDelay), Bound: slow}
		return c.addReadyRow(ctx, f, r.requireHits(c.proxy.hitCount()-hits), start)
	})
}

// recreateEarly creates a custom resource, deletes it after a quarter of cacheDelay, and creates it again.
func (c *campaign) recreateEarly(ctx context.Context, f *fixture) error {
	if err := f.createAll(ctx, c.testCluster); err != nil {
		return err
	}
	if err := c.pause(ctx, cacheDelay/4); err != nil {
		return err
	}
	if err := f.remove(ctx, c.testCluster); err != nil {
		return err
	}
	if err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return f.existsReason(ctx, c.testCluster) }); err != nil {
		return err
	}
	return f.createAll(ctx, c.testCluster)
}

// addReadyRow waits until a custom resource is ready and adds its row. Duplicate Jobs and orphans are deviations.
func (c *campaign) addReadyRow(ctx context.Context, f *fixture, r row, start framework.AuditPosition) error {
	waitStart := c.clock.Now()
	if err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return f.unreadyReason(ctx, c.testCluster, f.ready) }); err != nil {
		r.Deviations = append(r.Deviations, err.Error())
	}
	r.Recovery = c.clock.Since(waitStart)
	if err := c.waitIdle(ctx); err != nil {
		r.Deviations = append(r.Deviations, "not idle: "+err.Error())
	}
	jobs, err := c.countJobs(ctx, f.namespace)
	if err != nil {
		return err
	}
	if jobs > 1 {
		r.Deviations = append(r.Deviations, fmt.Sprintf("%d Jobs, want 1", jobs))
	}
	orphans, err := c.orphans(ctx, f.namespace)
	if err != nil {
		return err
	}
	r.Deviations = append(r.Deviations, orphans...)
	writes, err := c.writesSince(start)
	r.Writes = len(writes)
	c.addRow(r)
	return err
}

// countJobs returns the number of Jobs in a namespace.
func (c *campaign) countJobs(ctx context.Context, namespace string) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
	if err := c.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("listing Jobs: %w", err)
	}
	return len(list.Items), nil
}

// timeTravel restarts the manager with stale lists, in which a deleted custom resource still exists, or an existing one does not.
func (c *campaign) timeTravel(ctx context.Context, name, subject, resource string, deleted bool) error {
	return c.withSingleResource(ctx, subject, name, func(f *fixture) error {
		if deleted {
			if err := f.createAll(ctx, c.testCluster); err != nil {
				return err
			}
			if err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return f.unreadyReason(ctx, c.testCluster, f.ready) }); err != nil {
				return err
			}
		}
		if err := c.waitIdle(ctx); err != nil {
			return err
		}
		version, err := c.resourceVersion(ctx)
		if err != nil {
			return err
		}
		if deleted {
			err = errors.Join(f.remove(ctx, c.testCluster), c.waitUntil(ctx, waitTimeout, func() (string, error) { return f.existsReason(ctx, c.testCluster) }))
		} else {
			err = f.createAll(ctx, c.testCluster)
		}
		if err != nil {
			return err
		}
		remaining, err := c.remainingObjects(ctx, f, deleted)
		if err != nil {
			return err
		}
		start, err := c.audit.Position()
		if err != nil {
			return err
		}
		if err := c.manager.Kill(ctx); err != nil {
			return err
		}
		hits := c.proxy.hitCount()
		removeRule := c.proxy.addRule(rule{match: match{verbs: []string{"list", "watch"}, resources: []string{resource}}, fault: listAtVersion(version), streams: true})
		if err := errors.Join(c.manager.Restart(ctx), c.pause(ctx, cacheDelay)); err != nil {
			return err
		}
		removeRule()
		r := row{Scenario: name, Fault: fmt.Sprintf("the manager starts with lists of %s from before, for %s", resource, cacheDelay), Bound: slow}
		r = r.requireHits(c.proxy.hitCount() - hits)
		if !deleted {
			return c.addReadyRow(ctx, f, r, start)
		}
		return c.addDeletedRow(ctx, f, remaining, r, start)
	})
}

// resourceVersion returns the current resourceVersion of the cluster.
func (c *campaign) resourceVersion(ctx context.Context) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := c.admin.List(ctx, list); err != nil {
		return "", fmt.Errorf("reading the current resourceVersion: %w", err)
	}
	return list.ResourceVersion, nil
}

// collectionTimeout limits the wait for the garbage collector.
const collectionTimeout = 10 * time.Second

// remainingObjects returns the objects that a deleted custom resource leaves behind without a fault, such as the runtime of a model.
func (c *campaign) remainingObjects(ctx context.Context, f *fixture, deleted bool) (remaining []string, err error) {
	if !deleted {
		return nil, nil
	}
	err = c.waitUntil(ctx, collectionTimeout, func() (string, error) {
		var err error
		remaining, err = c.leftovers(ctx, f)
		return shorten(remaining, 3), err
	})
	if errors.Is(err, errTimeout) {
		err = nil
	}
	return remaining, errors.Join(err, c.waitIdle(ctx))
}

// addDeletedRow waits until only the remaining objects of a deleted custom resource exist, and adds its row.
func (c *campaign) addDeletedRow(ctx context.Context, f *fixture, remaining []string, r row, start framework.AuditPosition) error {
	waitStart := c.clock.Now()
	if err := c.waitIdle(ctx); err != nil {
		r.Deviations = append(r.Deviations, "not idle: "+err.Error())
	}
	err := c.waitUntil(ctx, slow, func() (string, error) {
		leftovers, err := c.leftovers(ctx, f)
		leftovers = slices.DeleteFunc(leftovers, func(one string) bool { return slices.Contains(remaining, one) })
		return shorten(leftovers, 3), err
	})
	r.Recovery = c.clock.Since(waitStart)
	if errors.Is(err, errTimeout) {
		r.Deviations, err = append(r.Deviations, err.Error()), nil
	}
	if err != nil {
		return err
	}
	writes, err := c.writesSince(start)
	r.Writes = len(writes)
	c.addRow(r)
	return err
}
