package together_test

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

// guards are resources without which no pod of ours may start; the rest may be written late.
var guards = []string{"serviceaccounts", "roles", "rolebindings", "networkpolicies", "configmaps", "secrets", "persistentvolumeclaims"}

// fault is a namespace in which writes fail, and the resource that meets them.
type fault struct {
	namespace string
	object    *unstructured.Unstructured
	refused   string
	foreign   *unstructured.Unstructured
	// all is what the component makes where nothing is wrong.
	all []child
}

func (f fault) String() string {
	text := f.object.GetKind() + " with " + f.refused + " refused"
	if f.foreign != nil {
		text += " and a foreign " + f.foreign.GetKind() + " " + f.foreign.GetName()
	}
	return text
}

// undisturbed creates a resource where nothing is wrong, and returns what the manager made of it.
func (c component) undisturbed(ctx context.Context) []child {
	GinkgoHelper()
	namespace := c.namespace(ctx, "well")
	mark := env.Mark()
	Expect(env.Admin.Create(ctx, c.object(namespace, namespace))).To(Succeed())
	Eventually(func() []child { return children(env.Since(mark), namespace) }).WithContext(ctx).WithTimeout(patience).ShouldNot(BeEmpty())
	env.Settle(manager.User, quiet, patience)
	return children(env.Since(mark), namespace)
}

// resources are the kinds of children, each once.
func resources(all []child) []string {
	var kinds []string
	for _, c := range all {
		if !slices.Contains(kinds, c.resource) {
			kinds = append(kinds, c.resource)
		}
	}
	return kinds
}

// foreignTo is somebody else's object in the place of a child of another kind than the one that is refused.
func foreignTo(namespace string, all []child, refused string, from int) *unstructured.Unstructured {
	GinkgoHelper()
	for i := range all {
		if c := all[(from+i)%len(all)]; c.resource != refused {
			if object := foreign(namespace, c); object != nil {
				return object
			}
		}
	}
	return nil
}

// disturb creates one resource for each kind of child, with that kind refused and, where pairs are wanted, another one in the way.
func (c component) disturb(ctx context.Context, all []child, pairs bool) []fault {
	GinkgoHelper()
	var faults []fault
	for i, refused := range resources(all) {
		f := fault{refused: refused, all: all, namespace: env.Namespace(ctx, "ill")}
		f.object = c.object(f.namespace, f.namespace)
		annotate(ctx, f.namespace, refused)
		if pairs {
			if f.foreign = foreignTo(f.namespace, all, refused, i+1); f.foreign != nil {
				Expect(env.Admin.Create(ctx, f.foreign)).To(Succeed())
			}
		}
		c.admit(ctx, f.namespace)
		Expect(env.Admin.Create(ctx, f.object)).To(Succeed())
		faults = append(faults, f)
	}
	return faults
}

// expectNamed waits until whoever looks at the resource reads one of its causes.
func (f fault) expectNamed(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string { return said(ctx, f.object) }).WithContext(ctx).WithTimeout(patience).
		Should(Or(ContainSubstring(refusal), ContainSubstring("was not made by this operator")), f.String())
}

// expectGuarded fails when pods could run without one of their guards.
func (f fault) expectGuarded(ctx context.Context) {
	GinkgoHelper()
	if f.missesGuard() {
		Consistently(func() []string { return f.unguarded(ctx) }).WithContext(ctx).WithTimeout(quiet/4).Should(BeEmpty(), f.String())
	}
}

// unguarded names the Deployments that run. Databases have guards of their own.
func (f fault) unguarded(ctx context.Context) []string {
	GinkgoHelper()
	shared := slices.Contains([]string{"networkpolicies", "secrets", "persistentvolumeclaims"}, f.refused)
	return slices.DeleteFunc(workloads(ctx, f.namespace), func(name string) bool { return !shared && strings.HasSuffix(name, "-postgres") })
}

func (f fault) missesGuard() bool {
	return slices.Contains(guards, f.refused) || f.foreign != nil && f.foreign.GetKind() != "Service"
}

// mend takes all faults away.
func (f fault) mend(ctx context.Context) {
	GinkgoHelper()
	annotate(ctx, f.namespace, "none")
	if f.foreign != nil {
		Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, f.foreign))).To(Succeed())
	}
	nudge(ctx, f.object)
}

func (f fault) expectWhole(ctx context.Context) {
	GinkgoHelper()
	want := map[schema.GroupVersionKind]int{}
	for _, c := range f.all {
		want[c.kind()]++
	}
	for kind, count := range want {
		Eventually(ours).WithContext(ctx).WithArguments(f.namespace, kind).WithTimeout(patience).
			Should(BeNumerically(">=", count), "%s: %s; it says:\n%s", f.String(), kind.Kind, said(ctx, f.object))
	}
}

var _ = Describe("Faults", func() {
	for _, pairs := range []bool{false, true} {
		title := map[bool]string{false: "one at each step", true: "in pairs"}[pairs]
		It(title+", are named, start no pod without its guards, stop nobody else, and end without a trace", func(ctx SpecContext) {
			process := manager.Process.PID
			made := map[string][]child{}
			for _, c := range components {
				made[c.kind] = c.undisturbed(ctx)
				AddReportEntry(c.kind, fmt.Sprint(made[c.kind]))
			}
			var faults []fault
			for _, c := range components {
				if c.kind != "AppWrapper" { // what it wraps is retried by rules of its own
					faults = append(faults, c.disturb(ctx, made[c.kind], pairs)...)
				}
			}
			for _, f := range faults {
				f.expectNamed(ctx)
			}
			for _, f := range faults {
				f.expectGuarded(ctx)
			}
			By("serving everybody else meanwhile")
			for _, c := range components {
				namespace := c.namespace(ctx, "meanwhile")
				Expect(env.Admin.Create(ctx, c.object(namespace, namespace))).To(Succeed())
				fault{namespace: namespace, object: c.object(namespace, namespace), all: made[c.kind]}.expectWhole(ctx)
			}
			By("going on where it stopped")
			for _, f := range faults {
				f.mend(ctx)
			}
			for _, f := range faults {
				f.expectWhole(ctx)
			}
			Expect(manager.Process.Running()).To(BeTrue())
			Expect(manager.Process.PID).To(Equal(process), "the manager did not restart")
			env.ExpectAtRest(manager.User, quiet)
		}, NodeTimeout(specTimeout))
	}
})
