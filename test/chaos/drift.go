package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is a change of a child by another client.
type change struct {
	class, problem string
	patch          []byte // nil means a deletion
	// to is the field with its new value; nil if the field or the child is removed.
	to *leaf
}

// classes of changes, with the corresponding types of operator-chaos.
var classes = map[string][]string{
	"labels": {"LabelStomping"}, "annotations": {"LabelStomping"}, "ownerReferences": {"OwnerRefOrphan"}, "deletion": {"ResourceDeletion", "SecretDeletion"},
	"data": {"ConfigDrift"}, "spec": {"CRDMutation"}, "image": {"ImageCorrupt"}, "command": {"CrashLoopInject"}, "replicas": {"DeploymentScaleZero"},
}

// unrepairedByDesign lists changes that the manager does not repair by design, with the reason.
var unrepairedByDesign = []struct {
	class, kind, field, reason string
}{
	{"", "PersistentVolumeClaim", "", "a claim belongs to its user once it is created: data is never replaced"},
	{"deletion", "Job", "", "the Job of a finished migration is not created again"},
	{"ownerReferences", "Job", "", "the operator never writes this field again"},
	{"data", "Secret", "", "passwords and keys are created once; another value is a rotation by a user"},
	{"annotations", "Deployment", "database-pod", "an annotation in which the controller of the catalog records the last database pod that it saw"},
}

// changesOf returns the changes to try on a child: some of each class of applied fields, and its deletion.
func (c *campaign) changesOf(o *unstructured.Unstructured) ([]change, error) {
	owned, err := applied(o)
	if err != nil {
		return nil, err
	}
	byClass := map[string][]change{}
	add := func(class, problem string, to *leaf, o operation) error {
		patch, err := patchOf(o)
		byClass[class] = append(byClass[class], change{class, problem, patch, to})
		return err
	}
	for _, l := range owned {
		class := classOf(l)
		if value, ok := changedValue(l, class, o.GetKind()); ok {
			if err := add(class, l.pointer+" changed", &leaf{l.pointer, value}, operation{"replace", l.pointer, value}); err != nil {
				return nil, err
			}
		}
		if class == "labels" || class == "annotations" {
			if err := add(class, l.pointer+" removed", nil, operation{Op: "remove", Path: l.pointer}); err != nil {
				return nil, err
			}
		}
	}
	if len(o.GetOwnerReferences()) > 0 {
		if err := add("ownerReferences", "owner references removed", nil, operation{Op: "remove", Path: "/metadata/ownerReferences"}); err != nil {
			return nil, err
		}
	}
	var selected []change
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		changes := byClass[class]
		c.random.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
		selected = append(selected, changes[:min(len(changes), c.changesPerClass)]...)
	}
	return append(selected, change{class: "deletion", problem: "deleted"}), nil
}

// changedValue returns a value that another client may set in a field; false if there is no such value.
func changedValue(l leaf, class, kind string) (any, bool) {
	value, ok := differentValue(l.value)
	switch {
	case slices.Contains([]string{"apiVersion", "kind", "ownerReferences"}, class):
		return nil, false
	case class == "replicas":
		return int64(0), ok
	case class == "data" && kind == "Secret":
		return base64.StdEncoding.EncodeToString([]byte("of-another-client")), ok
	}
	return value, ok
}

// classOf returns the class of a field, with separate classes for a few fields of workloads.
func classOf(l leaf) string {
	switch {
	case strings.HasSuffix(l.pointer, "/image"):
		return "image"
	case strings.Contains(l.pointer, "/command/"), strings.Contains(l.pointer, "/args/"), strings.HasSuffix(l.pointer, "/command"), strings.HasSuffix(l.pointer, "/args"):
		return "command"
	case l.pointer == "/spec/replicas":
		return "replicas"
	}
	switch section := l.section(); section {
	case "labels", "annotations", "ownerReferences", "data", "kind", "apiVersion":
		return section
	case "stringData", "binaryData":
		return "data"
	default:
		return "spec"
	}
}

// tally collects the results of a class.
type tally struct {
	times             []time.Duration
	writes, maxWrites int
	refused, byDesign int
	unrepaired        []string
	reasons           map[string]int
}

// runDrift changes every child in each class of fields, and waits until it is repaired.
func (c *campaign) runDrift(ctx context.Context) error {
	if err := c.populate(ctx); err != nil {
		return err
	}
	tallies := map[string]*tally{}
	for _, key := range c.children {
		o := key.object()
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return fmt.Errorf("reading %s: %w", key, err)
		}
		changes, err := c.changesOf(o)
		if err != nil {
			return err
		}
		for _, one := range changes {
			if tallies[one.class] == nil {
				tallies[one.class] = &tally{reasons: map[string]int{}}
			}
			if err := c.tryDrift(ctx, key, one, tallies[one.class]); err != nil {
				return err
			}
		}
		c.logf("drift of %s: %d changes", key, len(changes))
	}
	for _, class := range slices.Sorted(maps.Keys(tallies)) {
		c.addDriftRow(class, tallies[class])
	}
	return c.waitIdle(ctx)
}

// driftTimeout is the time after which a change counts as not repaired.
const driftTimeout = 15 * time.Second

// tryDrift makes one change and waits until it is repaired.
func (c *campaign) tryDrift(ctx context.Context, key id, one change, t *tally) error {
	begin, err := c.audit.Position()
	if err != nil {
		return err
	}
	start := c.clock.Now()
	if one.patch == nil {
		err = c.admin.Delete(ctx, key.object())
	} else {
		err = c.admin.Patch(ctx, key.object(), client.RawPatch(types.JSONPatchType, one.patch))
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		t.refused++
		return nil
	}
	if err != nil {
		return fmt.Errorf("changing %s, %s: %w", key, one.problem, err)
	}
	err = c.waitUntilEvery(ctx, driftPoll, driftTimeout, func() (string, error) { return c.brokenChild(ctx, key, one.to) })
	took := c.clock.Since(start)
	if err == nil {
		writes, err := c.writesSince(begin)
		if err != nil {
			return err
		}
		if took > prompt {
			c.logf("late: %s: %s: %s", key, one.problem, seconds(took))
		}
		t.times, t.writes, t.maxWrites = append(t.times, took), t.writes+len(writes), max(t.maxWrites, len(writes))
		return nil
	}
	if !errors.Is(err, errTimeout) {
		return err
	}
	if reason := reasonNotRepaired(one, key.Kind); reason != "" {
		t.byDesign++
		t.reasons[reason]++
	} else {
		t.unrepaired = append(t.unrepaired, fmt.Sprintf("%s: %s: %v", key, one.problem, err))
	}
	c.logf("not repaired: %s: %s", key, one.problem)
	return c.restoreChild(ctx, key)
}

// reasonNotRepaired returns why the manager does not repair a change by design, "" if the manager has to repair it.
func reasonNotRepaired(one change, kind string) string {
	for _, e := range unrepairedByDesign {
		if (e.class == "" || e.class == one.class) && e.kind == kind && strings.Contains(one.problem, e.field) {
			return e.reason
		}
	}
	return ""
}

// brokenChild returns how a child differs from base, "" if it is restored.
func (c *campaign) brokenChild(ctx context.Context, key id, changed *leaf) (string, error) {
	o := key.object()
	if err := c.admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return key.String() + " cannot be read", client.IgnoreNotFound(err)
	}
	if o.GetDeletionTimestamp() != nil {
		return key.String() + " is being deleted", nil
	}
	// Snapshots omit the values of Secrets.
	if changed != nil && at(o.Object, changed.pointer) == changed.value {
		return fmt.Sprintf("%s %s is still %v", key, changed.pointer, changed.value), nil
	}
	return shorten(differences(snapshot{key: c.base[key]}, snapshot{key: leaves(o)}, nil), 3), nil
}

// restoreChild deletes a child that was not repaired, other than a claim or a Job, so the manager recreates it before the next change. If
// the child still differs after driftTimeout, the current state becomes base.
func (c *campaign) restoreChild(ctx context.Context, key id) error {
	if key.Kind != "PersistentVolumeClaim" && key.Kind != "Job" {
		if err := client.IgnoreNotFound(c.admin.Delete(ctx, key.object())); err != nil {
			return fmt.Errorf("deleting %s: %w", key, err)
		}
	}
	err := c.waitUntil(ctx, driftTimeout, func() (string, error) { return c.brokenChild(ctx, key, nil) })
	if !errors.Is(err, errTimeout) {
		return err
	}
	if err := c.waitIdle(ctx); err != nil {
		return err
	}
	return c.saveBase(ctx)
}

func (c *campaign) addDriftRow(class string, t *tally) {
	slices.Sort(t.times)
	r := row{Scenario: "drift-" + strings.ToLower(class), Injections: classes[class], Bound: prompt, Writes: t.writes, Deviations: t.unrepaired}
	r.Fault = fmt.Sprintf("another client: %s of children, %d changes", class, len(t.times)+len(t.unrepaired)+t.byDesign+t.refused)
	var remarks []string
	if n := len(t.times); n > 0 {
		r.Recovery = t.times[n*95/100]
		remarks = append(remarks, fmt.Sprintf("%d repaired: median %s, 95 of 100 within %s, longest %s, at most %d writes each",
			n, seconds(t.times[n/2]), seconds(r.Recovery), seconds(t.times[n-1]), t.maxWrites))
	}
	if t.refused > 0 {
		remarks = append(remarks, fmt.Sprintf("%d refused by the API server", t.refused))
	}
	for _, reason := range slices.Sorted(maps.Keys(t.reasons)) {
		remarks = append(remarks, fmt.Sprintf("%d stay by design: %s", t.reasons[reason], reason))
	}
	r.Remark = strings.Join(remarks, "; ")
	if len(t.times) == 0 && len(t.unrepaired) == 0 {
		r.Verdict = inconclusive
	}
	c.addRow(r)
}
