package all_components_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fault is a namespace in which writes fail, with an affected resource.
type fault struct {
	component

	namespace string
	object    *unstructured.Unstructured
	refused   string
	// foreign has the name of one of our children; may be nil.
	foreign *unstructured.Unstructured
	// unguarded reports whether a guard is refused or a foreign object has its name.
	unguarded bool
	// all are the children that the component creates without a fault.
	all []child
}

func (f fault) String() string {
	text := f.object.GetKind() + " with " + f.refused + " refused"
	if f.foreign != nil {
		text += " and a foreign " + f.foreign.GetKind() + " " + f.foreign.GetName()
	}
	return text
}

// createWithoutFault creates a resource of each component without a fault, and returns the children that the manager created.
func createWithoutFault(ctx context.Context) map[string][]child {
	GinkgoHelper()
	start := env.AuditPosition()
	namespaces := map[string]string{}
	for _, c := range components {
		namespaces[c.kind] = c.namespace(ctx, "well")
		Expect(env.Admin.Create(ctx, c.object(namespaces[c.kind], namespaces[c.kind]))).To(Succeed())
	}
	made := func(kind string) []child { return children(env.Since(start), namespaces[kind]) }
	for _, c := range components {
		Eventually(made).WithContext(ctx).WithArguments(c.kind).WithTimeout(waitTimeout).ShouldNot(BeEmpty())
	}
	env.WaitIdle(manager.User, idlePeriod, waitTimeout)
	all := map[string][]child{}
	for _, c := range components {
		all[c.kind] = made(c.kind)
		AddReportEntry(c.kind, fmt.Sprint(all[c.kind]))
	}
	return all
}

// resources returns the resources of children without duplicates.
func resources(all []child) []string {
	var kinds []string
	for _, c := range all {
		if !slices.Contains(kinds, c.resource) {
			kinds = append(kinds, c.resource)
		}
	}
	return kinds
}

// occupy creates a foreign object with the name of a child of another kind than the refused one.
func (f *fault) occupy(ctx context.Context, from int) {
	GinkgoHelper()
	for i := range f.all {
		c := f.all[(from+i)%len(f.all)]
		if c.resource == f.refused {
			continue
		}
		if f.foreign = foreign(f.namespace, c); f.foreign != nil {
			Expect(env.Admin.Create(ctx, f.foreign)).To(Succeed())
			f.unguarded = f.unguarded || slices.Contains(f.guards, c.resource)
			return
		}
	}
}

// disturb creates one resource for each kind of child, with that kind refused and, for pairs, a foreign object with the name of another
// child.
func (c component) disturb(ctx context.Context, all []child, pairs bool) []fault {
	GinkgoHelper()
	var faults []fault
	for i, refused := range resources(all) {
		f := fault{component: c, refused: refused, all: all, namespace: env.Namespace(ctx, "ill"), unguarded: slices.Contains(c.guards, refused)}
		f.object = c.object(f.namespace, f.namespace)
		annotate(ctx, f.namespace, refused)
		if pairs {
			f.occupy(ctx, i+1)
		}
		c.admit(ctx, f.namespace)
		Expect(env.Admin.Create(ctx, f.object)).To(Succeed())
		faults = append(faults, f)
	}
	return faults
}

// expectNamed waits until the conditions or Events of the resource name one of the causes.
func (f fault) expectNamed(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string { return conditionsAndEvents(ctx, f.object) }).WithContext(ctx).WithTimeout(waitTimeout).
		Should(Or(ContainSubstring(refusal), ContainSubstring("was not created by this operator")), f.String())
}

// running returns the Deployments that run without one of their guards. Databases have other guards.
func (f fault) running(ctx context.Context) []string {
	GinkgoHelper()
	if !f.unguarded {
		return nil
	}
	shared := slices.Contains([]string{"networkpolicies", "secrets", "persistentvolumeclaims"}, f.refused)
	names := slices.DeleteFunc(workloads(ctx, f.namespace), func(name string) bool { return !shared && strings.HasSuffix(name, "-postgres") })
	for i := range names {
		names[i] = f.String() + ": " + names[i]
	}
	return names
}

// removeFaults removes all faults.
func (f fault) removeFaults(ctx context.Context) {
	GinkgoHelper()
	annotate(ctx, f.namespace, "none")
	if f.foreign != nil {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, f.foreign))).To(Succeed())
	}
	touch(ctx, f.object)
}

func (f fault) expectWhole(ctx context.Context) {
	GinkgoHelper()
	want := map[schema.GroupVersionKind]int{}
	for _, c := range f.all {
		want[c.kind()]++
	}
	for kind, count := range want {
		Eventually(countManaged).WithContext(ctx).WithArguments(f.namespace, kind).WithTimeout(waitTimeout).
			Should(BeNumerically(">=", count), func() string {
				return fmt.Sprintf("%s: %s; it says:\n%s", f, kind.Kind, conditionsAndEvents(ctx, f.object))
			})
	}
}

// Faults of all kinds run in parallel, so that the backoffs elapse at the same time.
var _ = Describe("Faults", func() {
	It("at each step and in pairs are reported, start no pod without its guards, stop no other component, and leave no trace", func(ctx SpecContext) {
		process := manager.Process.PID
		made := createWithoutFault(ctx)
		var faults []fault
		for _, c := range components {
			if c.kind != "AppWrapper" { // the AppWrapper retries its resources by its own rules
				faults = append(append(faults, c.disturb(ctx, made[c.kind], false)...), c.disturb(ctx, made[c.kind], true)...)
			}
		}
		for _, f := range faults {
			f.expectNamed(ctx)
		}
		Consistently(func() (all []string) {
			for _, f := range faults {
				all = append(all, f.running(ctx)...)
			}
			return all
		}).WithContext(ctx).WithTimeout(idlePeriod).Should(BeEmpty())
		By("serving all other components meanwhile")
		var served []fault
		for _, c := range components {
			namespace := c.namespace(ctx, "meanwhile")
			f := fault{component: c, namespace: namespace, object: c.object(namespace, namespace), all: made[c.kind]}
			Expect(env.Admin.Create(ctx, f.object)).To(Succeed())
			served = append(served, f)
		}
		for _, f := range served {
			f.expectWhole(ctx)
		}
		By("removing the faults")
		for _, f := range faults {
			f.removeFaults(ctx)
		}
		for _, f := range faults {
			f.expectWhole(ctx)
		}
		Expect(manager.Process.Running()).To(BeTrue())
		Expect(manager.Process.PID).To(Equal(process), "the manager did not restart")
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
	}, NodeTimeout(specTimeout))
})
