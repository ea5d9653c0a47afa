package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// campaign injects faults into a population of custom resources of every kind, and compares their state before and after.
type campaign struct {
	*testCluster

	seed     uint64
	random   *rand.Rand
	duration time.Duration
	// changesPerClass is the maximum number of changes of each class that the scenario drift makes to a child.
	changesPerClass int
	report          report
	// subjects are the custom resources in the population.
	subjects []subject
	fixtures []*fixture
	// base is the snapshot of the population without a fault.
	base snapshot
	// children are the objects that the manager created for custom resources other than AppWrappers, sorted by kind, namespace and name.
	children []id
	// claimUIDs holds the UIDs of PersistentVolumeClaims by kind and name.
	claimUIDs map[string]string
	// replaced reports whether other managers run in place of the default one.
	replaced bool
	// damaged reports whether the population must be recreated.
	damaged bool
}

// scenario produces one or more rows of the table.
type scenario struct {
	name string
	run  func(*campaign, context.Context) error
	// standalone scenarios run without the population.
	standalone bool
}

// populate creates the population unless it exists, and waits until all custom resources are ready and the manager is idle.
func (c *campaign) populate(ctx context.Context) error {
	if c.base != nil {
		return nil
	}
	for _, s := range c.subjects {
		f, err := s.fixture(s.name + "-chaos")
		if err != nil {
			return err
		}
		if err := f.createAll(ctx, c.testCluster); err != nil {
			return err
		}
		c.fixtures = append(c.fixtures, f)
	}
	if err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return c.firstUnready(ctx) }); err != nil {
		return fmt.Errorf("waiting for the population: %w", err)
	}
	if err := c.waitIdle(ctx); err != nil {
		return err
	}
	if err := c.saveBase(ctx); err != nil {
		return err
	}
	c.logf("%d custom resources ready, with %d children", len(c.fixtures), len(c.children))
	return nil
}

func (c *campaign) namespaces() []string {
	var all []string
	for _, f := range c.fixtures {
		all = append(all, f.namespace)
	}
	return all
}

// saveBase stores the current state as base.
func (c *campaign) saveBase(ctx context.Context) (err error) {
	if c.base, err = c.takeSnapshot(ctx, c.kinds, c.namespaces()...); err != nil {
		return err
	}
	if c.claimUIDs, err = c.uids(ctx, []string{"PersistentVolumeClaim"}, c.namespaces()...); err != nil {
		return err
	}
	live, err := c.list(ctx, c.base.kinds(), managed)
	if err != nil {
		return err
	}
	c.children = nil
	for key := range c.base {
		// The AppWrapper controller has its own rules for wrapped resources.
		if f := c.fixtureOf(key); live[key] != nil && f != nil && f.resource().GetKind() != "AppWrapper" && key.Kind != f.resource().GetKind() {
			c.children = append(c.children, key)
		}
	}
	slices.SortFunc(c.children, compareIDs)
	return nil
}

func compareIDs(a, b id) int { return cmp.Compare(a.String(), b.String()) }

// fixtureOf returns the fixture of an object, nil if it belongs to none.
func (c *campaign) fixtureOf(key id) *fixture {
	for _, f := range c.fixtures {
		if len((snapshot{key: nil}).ofFixture(f)) > 0 {
			return f
		}
	}
	return nil
}

func (c *campaign) firstUnready(ctx context.Context) (string, error) {
	for _, f := range c.fixtures {
		if problem, err := f.unreadyReason(ctx, c.testCluster, f.ready); problem != "" || err != nil {
			return problem, err
		}
	}
	return "", nil
}

// firstDeviations returns a description of the first deviations from base, "" if everything is restored.
func (c *campaign) firstDeviations(ctx context.Context) (string, error) {
	now, err := c.takeSnapshot(ctx, c.base.kinds(), c.namespaces()...)
	if err != nil {
		return "", err
	}
	if all := differences(c.base, now, nil); len(all) > 0 {
		return shorten(all, 3), nil
	}
	return c.firstUnready(ctx)
}

// deviations returns all deviations from base.
func (c *campaign) deviations(ctx context.Context) ([]string, error) {
	now, err := c.takeSnapshot(ctx, c.kinds, c.namespaces()...)
	if err != nil {
		return nil, err
	}
	all := differences(c.base, now, nil)
	problem, err := c.firstUnready(ctx)
	if err != nil {
		return nil, err
	}
	if problem != "" {
		all = append(all, problem)
	}
	claims, err := c.uids(ctx, []string{"PersistentVolumeClaim"}, c.namespaces()...)
	for name, uid := range c.claimUIDs {
		if claims[name] != uid {
			all = append(all, name+" was deleted or replaced, with its data")
		}
	}
	return all, err
}

// replaceable lists kinds of children that a controller can recreate without loss of data.
var replaceable = []string{"Deployment", "Service", "ConfigMap", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding", "HorizontalPodAutoscaler"}

// deleteChildren deletes one replaceable child, if any, of each custom resource. The manager has to recreate the child.
func (c *campaign) deleteChildren(ctx context.Context) error {
	for _, f := range c.fixtures {
		var candidates []id
		for _, key := range c.children {
			if slices.Contains(replaceable, key.Kind) && c.fixtureOf(key) == f {
				candidates = append(candidates, key)
			}
		}
		if len(candidates) == 0 {
			continue
		}
		key := candidates[c.random.IntN(len(candidates))]
		if err := c.admin.Delete(ctx, key.object()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", key, err)
		}
	}
	return nil
}

// object returns an empty object with the kind and name, for reading or deletion.
func (i id) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(i.GroupVersionKind)
	o.SetNamespace(i.namespace)
	o.SetName(i.name)
	return o
}

// disturbance is a fault that starts and ends while the population exists.
type disturbance struct {
	name, fault string
	injections  []string
	// duration is the duration of the fault; 0 for a momentary fault.
	duration time.Duration
	// bound is the limit of the recovery time.
	bound time.Duration
	// timeout limits the wait for the recovery; 0 means the default.
	timeout time.Duration
	// keepChildren is set if no children are deleted during the fault.
	keepChildren bool
	// proxied is set if the fault consists of rules of the proxy.
	proxied bool
	// begin starts the fault; end, which may be nil, removes it, even if begin returns an error.
	begin  func(context.Context) (end func(context.Context) error, err error)
	remark string
}

var errNotReady = errors.New("the population was not ready before the fault")

// disturb runs a disturbance and adds its row.
func (c *campaign) disturb(ctx context.Context, d disturbance) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	if problem, err := c.firstDeviations(ctx); err != nil || problem != "" {
		return errors.Join(fmt.Errorf("%w: %s", errNotReady, problem), err)
	}
	r := row{Scenario: d.name, Fault: d.fault, Injections: d.injections, Bound: d.bound, Remark: d.remark}
	start, err := c.audit.Position()
	if err != nil {
		return err
	}
	hits := c.proxy.hitCount()
	if err := c.inject(ctx, d); err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	if d.proxied {
		r = r.requireHits(c.proxy.hitCount() - hits)
	}
	waitStart := c.clock.Now()
	if err := c.waitUntil(ctx, cmp.Or(d.timeout, waitTimeout), func() (string, error) { return c.firstDeviations(ctx) }); err != nil {
		r.Deviations = append(r.Deviations, err.Error())
	}
	r.Recovery = c.clock.Since(waitStart)
	if err := c.waitIdle(ctx); err != nil {
		r.Deviations = append(r.Deviations, "not idle: "+err.Error())
	}
	more, err := c.deviations(ctx)
	if err != nil {
		return err
	}
	r.Deviations = append(r.Deviations, more...)
	writes, err := c.writesSince(start)
	if err != nil {
		return err
	}
	r.Writes = len(writes)
	c.addRow(r)
	return c.recreatePopulation(ctx, len(r.Deviations) > 0)
}

// inject starts the fault of a disturbance, deletes children, and ends the fault, even after an error.
func (c *campaign) inject(ctx context.Context, d disturbance) (err error) {
	end, err := d.begin(ctx)
	if end != nil {
		defer func() { err = errors.Join(err, end(ctx)) }()
	}
	if err != nil {
		return err
	}
	if !d.keepChildren {
		if err := c.deleteChildren(ctx); err != nil {
			return err
		}
	}
	return c.pause(ctx, d.duration)
}

func (c *campaign) addRow(r row) {
	r = r.setVerdict()
	c.report.Rows = append(c.report.Rows, r)
	c.logf("%s: %s, recovered after %s, %d writes %s", r.Scenario, r.Verdict, seconds(r.Recovery), r.Writes, shorten(r.Deviations, 5))
}

// recreatePopulation recreates the population if needed. While other managers run, it only sets damaged.
func (c *campaign) recreatePopulation(ctx context.Context, needed bool) error {
	c.damaged = needed && c.replaced
	if !needed || c.replaced {
		return nil
	}
	c.proxy.removeRules()
	if err := c.restart(ctx); err != nil {
		return err
	}
	return errors.Join(c.depopulate(ctx), c.populate(ctx))
}

// depopulate deletes the population and all leftover objects.
func (c *campaign) depopulate(ctx context.Context) error {
	for _, f := range c.fixtures {
		if err := f.remove(ctx, c.testCluster); err != nil {
			return err
		}
	}
	for _, f := range c.fixtures {
		if err := c.waitUntil(ctx, waitTimeout, func() (string, error) { return f.existsReason(ctx, c.testCluster) }); err != nil {
			return fmt.Errorf("removing the population: %w", err)
		}
	}
	err := (&sieve{campaign: c}).deleteLeftovers(ctx, c.fixtures)
	c.fixtures, c.base = nil, nil
	return err
}

func (c *testCluster) createNamespace(ctx context.Context, f *fixture) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace, Labels: f.labels}}
	if err := client.IgnoreAlreadyExists(c.admin.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("creating namespace %s: %w", f.namespace, err)
	}
	return nil
}

// deleteNamespacesAndWait deletes namespaces and waits until they are deleted.
func (c *testCluster) deleteNamespacesAndWait(ctx context.Context, namespaces ...string) error {
	named := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		o.SetName(name)
		return o
	}
	for _, name := range namespaces {
		if err := c.admin.Delete(ctx, named(name)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting namespace %s: %w", name, err)
		}
	}
	for _, name := range namespaces {
		err := c.waitUntil(ctx, waitTimeout, func() (string, error) {
			err := c.admin.Get(ctx, client.ObjectKey{Name: name}, named(name))
			if apierrors.IsNotFound(err) {
				return "", nil
			}
			return "namespace " + name + " still exists", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
