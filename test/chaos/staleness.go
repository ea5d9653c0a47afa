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

// lateness is the delay of a stale cache.
const lateness = 8 * time.Second

// stalenessScenarios returns faults of stale caches and of API servers that return past states.
func stalenessScenarios() []scenario {
	late := func(name, of, resource string) scenario {
		return scenario{name: name, apart: true, run: func(c *campaign, ctx context.Context) error { return c.lateCache(ctx, name, of, resource) }}
	}
	past := func(name, of, resource string, deleted bool) scenario {
		return scenario{name: name, apart: true, run: func(c *campaign, ctx context.Context) error { return c.timeTravel(ctx, name, of, resource, deleted) }}
	}
	return []scenario{
		late("late-jobs-mlflow", "mlflow", "jobs"), late("late-deployments-mlflow", "mlflow", "deployments"), late("late-mlflows", "mlflow", "mlflows"),
		late("late-jobs-appwrapper", "appwrapperjob", "jobs"), late("late-appwrappers", "appwrapperjob", "appwrappers"),
		late("late-registries", "registry", "modelregistries"), late("late-secrets", "registry", "secrets"), late("late-claims", "registry", "persistentvolumeclaims"),
		late("late-catalogs", "catalog", "catalogs"), late("late-secrets-catalog", "catalog", "secrets"), late("late-claims-catalog", "catalog", "persistentvolumeclaims"),
		late("late-rayclusters", "raycluster", "rayclusters"), late("late-secrets-raycluster", "raycluster", "secrets"),
		late("late-predictors", "predictor", "predictors"),
		past("past-deleted-registry", "registry", "modelregistries", true), past("past-unknown-appwrapper", "appwrapperjob", "appwrappers", false),
		past("past-deleted-mlflow", "mlflow", "mlflows", true), past("past-deleted-catalog", "catalog", "catalogs", true),
		past("past-deleted-appwrapper", "appwrapper", "appwrappers", true), past("past-deleted-raycluster", "raycluster", "rayclusters", true),
		past("past-deleted-predictor", "predictor", "predictors", true),
	}
}

// withSingleResource runs a scenario with a single custom resource in place of a population, and deletes it afterwards.
func (c *campaign) withSingleResource(ctx context.Context, name, scenario string, run func(*plot) error) error {
	s, err := subjectNamed(name)
	if err != nil {
		return err
	}
	p, err := s.plot("chaos-" + scenario)
	if err != nil {
		return err
	}
	err = run(p)
	one := &sieve{campaign: c}
	return errors.Join(err, p.remove(ctx, c.testCluster), c.until(ctx, waitTimeout, func() (string, error) { return p.stillExists(ctx, c.testCluster) }), one.deleteLeftovers(ctx, []*plot{p}))
}

var errUnknown = errors.New("there is no such subject")

// lateCache delays the watch events of a resource while a custom resource is created, deleted and created again.
func (c *campaign) lateCache(ctx context.Context, name, of, resource string) error {
	return c.withSingleResource(ctx, of, name, func(p *plot) error {
		start, err := c.audit.Position()
		if err != nil {
			return err
		}
		// Events arrive in batches, each delayed: like those of a cache that is always behind.
		lumps, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for lumps.Err() == nil {
				lift := c.proxy.addRule(rule{match: watches(resource), streams: true})
				_ = c.pause(lumps, lateness) // ends with the context
				lift()
			}
		}()
		err = c.recreateEarly(ctx, p)
		stop()
		<-done
		if err != nil {
			return err
		}
		return c.waitReadyRow(ctx, p, row{Scenario: name, Fault: fmt.Sprintf("%s of %s are seen up to %s late at creation, deletion and creation again", resource, of, lateness), Bound: slow}, start)
	})
}

// recreateEarly creates a custom resource, deletes it after its first children were created, and creates it again.
func (c *campaign) recreateEarly(ctx context.Context, p *plot) error {
	if err := p.createAll(ctx, c.testCluster); err != nil {
		return err
	}
	if err := c.pause(ctx, lateness/4); err != nil {
		return err
	}
	if err := p.remove(ctx, c.testCluster); err != nil {
		return err
	}
	if err := c.until(ctx, waitTimeout, func() (string, error) { return p.stillExists(ctx, c.testCluster) }); err != nil {
		return err
	}
	return p.createAll(ctx, c.testCluster)
}

// waitReadyRow waits until a custom resource is ready and adds its row. Duplicate Jobs and orphans are deviations.
func (c *campaign) waitReadyRow(ctx context.Context, p *plot, r row, start framework.AuditPosition) error {
	ended := c.clock.Now()
	if err := c.until(ctx, waitTimeout, func() (string, error) { return p.wrong(ctx, c.testCluster, p.ready) }); err != nil {
		r.Deviations = append(r.Deviations, err.Error())
	}
	r.Recovery = c.clock.Since(ended)
	if err := c.waitIdle(ctx); err != nil {
		r.Deviations = append(r.Deviations, "not at rest: "+err.Error())
	}
	jobs, err := c.jobsAtOnce(ctx, p.namespace)
	if err != nil {
		return err
	}
	if jobs > 1 {
		r.Deviations = append(r.Deviations, fmt.Sprintf("%d Jobs, where one is wanted", jobs))
	}
	dead, err := c.orphans(ctx, p.namespace)
	if err != nil {
		return err
	}
	r.Deviations = append(r.Deviations, dead...)
	writes, err := c.writesSince(start)
	r.Writes = len(writes)
	c.note(r)
	return err
}

// jobsAtOnce returns the number of Jobs in a namespace.
func (c *campaign) jobsAtOnce(ctx context.Context, namespace string) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})
	if err := c.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("listing Jobs: %w", err)
	}
	return len(list.Items), nil
}

// timeTravel restarts the manager against past lists: a custom resource is deleted but still listed, or exists but is not listed.
func (c *campaign) timeTravel(ctx context.Context, name, of, resource string, deleted bool) error {
	return c.withSingleResource(ctx, of, name, func(p *plot) error {
		if deleted {
			if err := p.createAll(ctx, c.testCluster); err != nil {
				return err
			}
			if err := c.until(ctx, waitTimeout, func() (string, error) { return p.wrong(ctx, c.testCluster, p.ready) }); err != nil {
				return err
			}
		}
		if err := c.waitIdle(ctx); err != nil {
			return err
		}
		version, err := c.version(ctx)
		if err != nil {
			return err
		}
		if deleted {
			err = errors.Join(p.remove(ctx, c.testCluster), c.until(ctx, waitTimeout, func() (string, error) { return p.stillExists(ctx, c.testCluster) }))
		} else {
			err = p.createAll(ctx, c.testCluster)
		}
		if err != nil {
			return err
		}
		remaining, err := c.remainingObjects(ctx, p, deleted)
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
		lift := c.proxy.addRule(rule{match: match{verbs: []string{"list", "watch"}, resources: []string{resource}}, fault: pastVersion(version), streams: true})
		if err := errors.Join(c.manager.Restart(ctx), c.pause(ctx, lateness)); err != nil {
			return err
		}
		lift()
		r := row{Scenario: name, Fault: fmt.Sprintf("the manager starts with lists of %s from before, for %s", resource, lateness), Bound: slow}
		if !deleted {
			return c.waitReadyRow(ctx, p, r, start)
		}
		return c.nothingLeft(ctx, p, remaining, r, start)
	})
}

// version returns the current resourceVersion of the cluster.
func (c *campaign) version(ctx context.Context) (string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err := c.admin.List(ctx, list); err != nil {
		return "", fmt.Errorf("reading the version of the cluster: %w", err)
	}
	return list.ResourceVersion, nil
}

// collection bounds the time that the garbage collector takes.
const collection = 10 * time.Second

// remainingObjects returns the objects that a deleted custom resource leaves without a fault, such as a runtime without its model.
func (c *campaign) remainingObjects(ctx context.Context, p *plot, deleted bool) (remaining []string, err error) {
	if !deleted {
		return nil, nil
	}
	err = c.until(ctx, collection, func() (string, error) {
		var err error
		remaining, err = c.leftOver(ctx, p)
		return shorten(remaining, 3), err
	})
	if errors.Is(err, errTimeout) {
		err = nil
	}
	return remaining, errors.Join(err, c.waitIdle(ctx))
}

// nothingLeft waits until only the objects in staying are left of a deleted custom resource, and adds its row.
func (c *campaign) nothingLeft(ctx context.Context, p *plot, remaining []string, r row, start framework.AuditPosition) error {
	ended := c.clock.Now()
	if err := c.waitIdle(ctx); err != nil {
		r.Deviations = append(r.Deviations, "not at rest: "+err.Error())
	}
	err := c.until(ctx, slow, func() (string, error) {
		dead, err := c.leftOver(ctx, p)
		dead = slices.DeleteFunc(dead, func(one string) bool { return slices.Contains(remaining, one) })
		return shorten(dead, 3), err
	})
	r.Recovery = c.clock.Since(ended)
	if errors.Is(err, errTimeout) {
		r.Deviations, err = append(r.Deviations, err.Error()), nil
	}
	if err != nil {
		return err
	}
	writes, err := c.writesSince(start)
	r.Writes = len(writes)
	c.note(r)
	return err
}
