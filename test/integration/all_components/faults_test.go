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

// fault is a namespace in which the writes of a resource are refused, with a custom resource in it.
type fault struct {
	component

	namespace string
	object    *unstructured.Unstructured
	// refused is the resource whose writes are refused; "" without a fault.
	refused string
	// foreign has the name of a child; nil unless the fault is a pair.
	foreign *unstructured.Unstructured
	// unguarded reports whether the fault affects a guard.
	unguarded bool
	// children are those that the component creates without a fault.
	children []child
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
		namespaces[c.kind] = c.namespace(ctx, "healthy")
		Expect(env.Admin.Create(ctx, c.object(namespaces[c.kind], namespaces[c.kind]))).To(Succeed())
	}
	createdChildren := func(kind string) []child { return children(env.Since(start), namespaces[kind]) }
	for _, c := range components {
		Eventually(createdChildren).WithContext(ctx).WithArguments(c.kind).WithTimeout(waitTimeout).ShouldNot(BeEmpty())
	}
	env.WaitIdle(manager.User, idlePeriod, waitTimeout)
	all := map[string][]child{}
	for _, c := range components {
		all[c.kind] = createdChildren(c.kind)
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

// createForeign creates a foreign object with the name of a child whose writes are not refused.
func (f *fault) createForeign(ctx context.Context, from int) {
	GinkgoHelper()
	for i := range f.children {
		c := f.children[(from+i)%len(f.children)]
		if c.resource == f.refused {
			continue
		}
		if f.foreign = foreignObject(f.namespace, c); f.foreign != nil {
			Expect(env.Admin.Create(ctx, f.foreign)).To(Succeed())
			f.unguarded = f.unguarded || slices.Contains(f.guards, c.resource)
			return
		}
	}
}

// createWithFaults creates one custom resource for each resource of the children, and refuses the writes of this resource. For pairs, a
// foreign object has the name of another child.
func (c component) createWithFaults(ctx context.Context, all []child, pairs bool) []fault {
	GinkgoHelper()
	var faults []fault
	for i, refused := range resources(all) {
		f := fault{component: c, refused: refused, children: all, namespace: env.Namespace(ctx, "faulty"), unguarded: slices.Contains(c.guards, refused)}
		f.object = c.object(f.namespace, f.namespace)
		refuseWrites(ctx, f.namespace, refused)
		if pairs {
			f.createForeign(ctx, i+1)
		}
		c.setNamespaceLabels(ctx, f.namespace)
		Expect(env.Admin.Create(ctx, f.object)).To(Succeed())
		faults = append(faults, f)
	}
	return faults
}

// expectReported waits until the conditions or Events of the custom resource report a fault.
func (f fault) expectReported(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string { return conditionsAndEvents(ctx, f.object) }).WithContext(ctx).WithTimeout(waitTimeout).
		Should(Or(ContainSubstring(refusalMessage), ContainSubstring("was not created by this operator")), f.String())
}

// unguardedDeployments returns the Deployments that exist without one of their guards. Databases have fewer guards.
func (f fault) unguardedDeployments(ctx context.Context) []string {
	GinkgoHelper()
	if !f.unguarded {
		return nil
	}
	guardsDatabase := slices.Contains([]string{"networkpolicies", "secrets", "persistentvolumeclaims"}, f.refused)
	names := slices.DeleteFunc(deploymentNames(ctx, f.namespace), func(name string) bool { return !guardsDatabase && strings.HasSuffix(name, "-postgres") })
	for i := range names {
		names[i] = f.String() + ": " + names[i]
	}
	return names
}

// removeFaults removes all faults.
func (f fault) removeFaults(ctx context.Context) {
	GinkgoHelper()
	refuseWrites(ctx, f.namespace, "none")
	if f.foreign != nil {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, f.foreign))).To(Succeed())
	}
	touch(ctx, f.object)
}

// expectAllChildren waits until all children exist.
func (f fault) expectAllChildren(ctx context.Context) {
	GinkgoHelper()
	want := map[schema.GroupVersionKind]int{}
	for _, c := range f.children {
		want[c.kind()]++
	}
	for kind, count := range want {
		Eventually(countManaged).WithContext(ctx).WithArguments(f.namespace, kind).WithTimeout(waitTimeout).
			Should(BeNumerically(">=", count), func() string {
				return fmt.Sprintf("%s: %s is missing; conditions and Events:\n%s", f, kind.Kind, conditionsAndEvents(ctx, f.object))
			})
	}
}

// Faults of all kinds run in parallel, because each waits for a backoff.
var _ = Describe("Faults", func() {
	It("at each step and in pairs are reported, start no pod without its guards, affect no other component, and are recovered from", func(ctx SpecContext) {
		pid := manager.Process.PID
		createdChildren := createWithoutFault(ctx)
		var faults []fault
		for _, c := range components {
			if c.kind != "AppWrapper" { // an AppWrapper has its own retry rules
				faults = append(append(faults, c.createWithFaults(ctx, createdChildren[c.kind], false)...), c.createWithFaults(ctx, createdChildren[c.kind], true)...)
			}
		}
		for _, f := range faults {
			f.expectReported(ctx)
		}
		Consistently(func() (all []string) {
			for _, f := range faults {
				all = append(all, f.unguardedDeployments(ctx)...)
			}
			return all
		}).WithContext(ctx).WithTimeout(idlePeriod).Should(BeEmpty())
		By("creating a resource of each component without a fault")
		var faultless []fault
		for _, c := range components {
			namespace := c.namespace(ctx, "faultless")
			f := fault{component: c, namespace: namespace, object: c.object(namespace, namespace), children: createdChildren[c.kind]}
			Expect(env.Admin.Create(ctx, f.object)).To(Succeed())
			faultless = append(faultless, f)
		}
		for _, f := range faultless {
			f.expectAllChildren(ctx)
		}
		By("removing the faults")
		for _, f := range faults {
			f.removeFaults(ctx)
		}
		for _, f := range faults {
			f.expectAllChildren(ctx)
		}
		Expect(manager.Process.Running()).To(BeTrue())
		Expect(manager.Process.PID).To(Equal(pid), "the manager has restarted")
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)
	}, NodeTimeout(specTimeout))
})
