package appwrapper_kueue_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var _ = Describe("The slack queue", func() {
	It("lends only the rest of its quota while a node is unschedulable, with the permissions of its component", func(ctx SpecContext) {
		const quota = 1000
		slack := clusterQueue("slack")
		slack.Object["spec"] = framework.Manifest(`{namespaceSelector: {}, cohortName: all, resourceGroups: [
			{coveredResources: [cpu], flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: "%d"}]}]}]}`, quota).Object
		eventuallyCreate(ctx, slack)
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, slack)).To(Succeed()) }, NodeTimeout(specTimeout))
		nodes := &corev1.NodeList{}
		Expect(env.Admin.List(ctx, nodes)).To(Succeed())
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodes.Items[0].Name}}
		setUnschedulable := func(ctx SpecContext, unschedulable bool) {
			env.Patch(ctx, node, map[string]any{"spec": map[string]any{"unschedulable": unschedulable}})
		}
		expectLendingLimit := func(want string) {
			GinkgoHelper()
			env.WaitFor(ctx, slack, func(g Gomega) {
				groups, _, _ := unstructured.NestedSlice(slack.Object, "spec", "resourceGroups")
				g.Expect(groups).To(HaveLen(1))
				cpu := groups[0].(map[string]any)["flavors"].([]any)[0].(map[string]any)["resources"].([]any)[0].(map[string]any)
				limit, _ := cpu["lendingLimit"].(string)
				g.Expect(limit).To(Equal(want))
			})
		}
		DeferCleanup(setUnschedulable, false, NodeTimeout(specTimeout))
		setUnschedulable(ctx, true)
		remaining := resource.NewQuantity(quota, resource.DecimalSI)
		remaining.Sub(nodes.Items[0].Status.Capacity[corev1.ResourceCPU])
		expectLendingLimit(remaining.String())
		setUnschedulable(ctx, false)
		expectLendingLimit("")
	}, SpecTimeout(specTimeout))
})
