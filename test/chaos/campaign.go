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

// campaign disturbs custom resources of every kind that stand side by side, and compares them with what they were.
type campaign struct {
	*world

	seed     uint64
	random   *rand.Rand
	duration time.Duration
	// fields is how many fields of each class drift changes in one child.
	fields int
	report report
	// subjects are those of which the population consists.
	subjects []subject
	plots    []*plot
	// base is the undisturbed picture of everything, and ignore what varies in it.
	base   picture
	ignore mask
	// children are what the manager made for custom resources, in order.
	children []id
	// data are the uids of claims.
	data map[string]string
	// replaced says that other managers run in the place of the usual one, damaged that the population has to be made again.
	replaced, damaged bool
}

// scenario is one row, or several, of the table.
type scenario struct {
	name string
	run  func(*campaign, context.Context) error
	// apart scenarios need no population.
	apart bool
}

// populate makes one custom resource of every kind and waits until all of them are ready and at rest.
func (c *campaign) populate(ctx context.Context) error {
	if c.base != nil {
		return nil
	}
	for _, s := range c.subjects {
		p, err := s.plot(s.name + "-chaos")
		if err != nil {
			return err
		}
		if err := p.createAll(ctx, c.world); err != nil {
			return err
		}
		c.plots = append(c.plots, p)
	}
	if err := c.until(ctx, patience, func() (string, error) { return c.unreadyPlot(ctx) }); err != nil {
		return fmt.Errorf("waiting for the population: %w", err)
	}
	if err := c.settle(ctx); err != nil {
		return err
	}
	if err := c.remember(ctx); err != nil {
		return err
	}
	c.say("%d custom resources ready, with %d children", len(c.plots), len(c.children))
	return nil
}

func (c *campaign) namespaces() []string {
	var all []string
	for _, p := range c.plots {
		all = append(all, p.namespace)
	}
	return all
}

// remember makes the present state the one to come back to.
func (c *campaign) remember(ctx context.Context) (err error) {
	if c.base, err = c.take(ctx, c.kinds, c.namespaces()...); err != nil {
		return err
	}
	if c.data, err = c.uids(ctx, []string{"PersistentVolumeClaim"}, c.namespaces()...); err != nil {
		return err
	}
	live, err := c.list(ctx, c.base.kinds(), ours)
	if err != nil {
		return err
	}
	c.children = nil
	for key := range c.base {
		// What an AppWrapper wraps is retried by rules of its own.
		if p := c.plotOf(key); live[key] != nil && p != nil && p.resource().GetKind() != "AppWrapper" && key.Kind != p.resource().GetKind() {
			c.children = append(c.children, key)
		}
	}
	slices.SortFunc(c.children, compareIDs)
	return nil
}

func compareIDs(a, b id) int { return cmp.Compare(a.String(), b.String()) }

// plotOf is the plot that an object belongs to.
func (c *campaign) plotOf(key id) *plot {
	for _, p := range c.plots {
		if len((picture{key: nil}).within(p)) > 0 {
			return p
		}
	}
	return nil
}

func (c *campaign) unreadyPlot(ctx context.Context) (string, error) {
	for _, p := range c.plots {
		if what, err := p.wrong(ctx, c.world, p.ready); what != "" || err != nil {
			return what, err
		}
	}
	return "", nil
}

// broken says what is not as it was; empty when all is well.
func (c *campaign) broken(ctx context.Context) (string, error) {
	now, err := c.take(ctx, c.base.kinds(), c.namespaces()...)
	if err != nil {
		return "", err
	}
	if all := differences(c.base, now, c.ignore); len(all) > 0 {
		return shorten(all, 3), nil
	}
	return c.unreadyPlot(ctx)
}

// deviations compares everything that exists with what was.
func (c *campaign) deviations(ctx context.Context) ([]string, error) {
	now, err := c.take(ctx, c.kinds, c.namespaces()...)
	if err != nil {
		return nil, err
	}
	all := differences(c.base, now, c.ignore)
	what, err := c.unreadyPlot(ctx)
	if err != nil {
		return nil, err
	}
	if what != "" {
		all = append(all, what)
	}
	claims, err := c.uids(ctx, []string{"PersistentVolumeClaim"}, c.namespaces()...)
	for name, uid := range c.data {
		if claims[name] != uid {
			all = append(all, name+" was replaced, with its data")
		}
	}
	return all, err
}

// replaceable are kinds of children whose loss a controller repairs without a loss of data.
var replaceable = []string{"Deployment", "Service", "ConfigMap", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding", "HorizontalPodAutoscaler"}

// provoke deletes one child of each custom resource, so that there is something to repair.
func (c *campaign) provoke(ctx context.Context) error {
	for _, p := range c.plots {
		var candidates []id
		for _, key := range c.children {
			if slices.Contains(replaceable, key.Kind) && c.plotOf(key) == p {
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

// object is one to read into or to delete.
func (i id) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(i.GroupVersionKind)
	o.SetNamespace(i.namespace)
	o.SetName(i.name)
	return o
}

// disturbance is a fault that begins and ends while custom resources stand.
type disturbance struct {
	name, fault string
	injections  []string
	// lasts is how long the fault stays; 0 for one that has no length.
	lasts time.Duration
	// bound is how long the recovery may take.
	bound time.Duration
	// patience is how long to wait for the recovery; 0 means the usual one.
	patience time.Duration
	// calm leaves the children alone meanwhile.
	calm bool
	// begin makes the fault; end, which may be nil, takes it away.
	begin  func(context.Context) (end func(context.Context) error, err error)
	remark string
}

var errNotWhole = errors.New("the population was not whole before the fault")

// disturb runs a disturbance and notes its row.
func (c *campaign) disturb(ctx context.Context, d disturbance) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	if what, err := c.broken(ctx); err != nil || what != "" {
		return errors.Join(fmt.Errorf("%w: %s", errNotWhole, what), err)
	}
	r := row{Scenario: d.name, Fault: d.fault, Injections: d.injections, Bound: d.bound, Remark: d.remark}
	mark, err := c.audit.Mark()
	if err != nil {
		return err
	}
	end, err := d.begin(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	if !d.calm {
		if err := c.provoke(ctx); err != nil {
			return err
		}
	}
	if err := c.pause(ctx, d.lasts); err != nil {
		return err
	}
	if end != nil {
		if err := end(ctx); err != nil {
			return fmt.Errorf("ending %s: %w", d.name, err)
		}
	}
	ended := c.clock.Now()
	if err := c.until(ctx, cmp.Or(d.patience, patience), func() (string, error) { return c.broken(ctx) }); err != nil {
		r.Deviations = append(r.Deviations, err.Error())
	}
	r.Recovery = c.clock.Since(ended)
	if err := c.settle(ctx); err != nil {
		r.Deviations = append(r.Deviations, "not at rest: "+err.Error())
	}
	more, err := c.deviations(ctx)
	if err != nil {
		return err
	}
	r.Deviations = append(r.Deviations, more...)
	writes, err := c.sent(mark)
	if err != nil {
		return err
	}
	r.Writes = len(writes)
	c.note(r)
	return c.mend(ctx, len(r.Deviations) > 0)
}

// note adds a row to the table.
func (c *campaign) note(r row) {
	r = r.judge()
	c.report.Rows = append(c.report.Rows, r)
	c.say("%s: %s, whole again after %s, %d writes %s", r.Scenario, r.Verdict, seconds(r.Recovery), r.Writes, shorten(r.Deviations, 5))
}

// mend makes the population again when a scenario has left it broken, so that the next one begins with a whole one.
func (c *campaign) mend(ctx context.Context, needed bool) error {
	c.damaged = needed && c.replaced
	if !needed || c.replaced {
		return nil
	}
	c.proxy.liftAll()
	if err := c.restart(ctx); err != nil {
		return err
	}
	return errors.Join(c.depopulate(ctx), c.populate(ctx))
}

// depopulate removes the population with all that is left of it.
func (c *campaign) depopulate(ctx context.Context) error {
	for _, p := range c.plots {
		if err := p.remove(ctx, c.world); err != nil {
			return err
		}
	}
	for _, p := range c.plots {
		if err := c.until(ctx, patience, func() (string, error) { return p.gone(ctx, c.world) }); err != nil {
			return fmt.Errorf("removing the population: %w", err)
		}
	}
	err := (&sieve{campaign: c}).sweep(ctx, c.plots)
	c.plots, c.base = nil, nil
	return err
}

// createNamespace makes the namespace of a plot.
func (w *world) createNamespace(ctx context.Context, p *plot) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace, Labels: p.labels}}
	if err := client.IgnoreAlreadyExists(w.admin.Create(ctx, namespace)); err != nil {
		return fmt.Errorf("creating namespace %s: %w", p.namespace, err)
	}
	return nil
}

// clear deletes namespaces and waits until they have gone.
func (w *world) clear(ctx context.Context, namespaces ...string) error {
	named := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		o.SetName(name)
		return o
	}
	for _, name := range namespaces {
		if err := w.admin.Delete(ctx, named(name)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting namespace %s: %w", name, err)
		}
	}
	for _, name := range namespaces {
		err := w.until(ctx, patience, func() (string, error) {
			err := w.admin.Get(ctx, client.ObjectKey{Name: name}, named(name))
			if apierrors.IsNotFound(err) {
				return "", nil
			}
			return "namespace " + name + " is still there", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
