package restore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/everykind"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// roots are the kinds that users write, in the order of the restore: dependencies first.
var roots = []string{"Catalog", "InferenceService", "MLflow", "MLflowConfig", "ModelRegistry", "Predictor", "RayCluster", "ServingRuntime", "AppWrapper"}

func title(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// childrenFirst sorts children before the resources of users. ServiceAccounts come before Pods, which require them.
func childrenFirst(objects []*unstructured.Unstructured) {
	rank := func(o *unstructured.Unstructured) int {
		if o.GetKind() == "ServiceAccount" {
			return -2
		}
		return slices.Index(roots, o.GetKind())
	}
	rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
}

// ofMLflow returns the objects of the MLflow in the namespace of the manager.
func ofMLflow(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		owner := metav1.GetControllerOf(o)
		return o.GetName() != "mlflow-pvc" && (owner == nil || owner.Kind != "MLflow")
	})
}

// restore creates objects, and returns the UIDs of those that did not exist.
func restore(ctx context.Context, objects []*unstructured.Unstructured) map[string]types.UID {
	GinkgoHelper()
	restored := map[string]types.UID{}
	for _, object := range objects {
		o := stripped(object)
		var exists bool
		Eventually(func() error {
			err := env.Admin.Create(ctx, o)
			if exists = apierrors.IsAlreadyExists(err); exists {
				return nil
			}
			return err
		}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed(), title(o))
		if !exists {
			restored[title(o)] = o.GetUID()
		}
	}
	return restored
}

// names returns objects by kind and name, except Pods and ReplicaSets, which rollouts replace.
func names(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		if o.GetKind() != "ReplicaSet" && (o.GetKind() != "Pod" || ofAppWrapper(o)) {
			all = append(all, title(o))
		}
	}
	slices.Sort(all)
	return all
}

func ofAppWrapper(object *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "AppWrapper"
}

// expectTakenOver checks that the restored objects are in use, with owner references to the new resource.
func expectTakenOver(before, after []*unstructured.Unstructured, restored map[string]types.UID) {
	GinkgoHelper()
	now := map[string]*unstructured.Unstructured{}
	for _, o := range after {
		now[title(o)] = o
	}
	var wrong []string
	for _, old := range before {
		live, owner := now[title(old)], metav1.GetControllerOf(old)
		switch {
		case old.GetKind() == "ReplicaSet" || old.GetKind() == "Pod" && !ofAppWrapper(old):
		case live == nil:
			wrong = append(wrong, title(old)+" is missing")
		case old.GetLabels()["platform.opendatahub.io/component"] == "modelmesh": // it is deleted while no runtime exists, and has no data
		case restored[title(old)] != "" && live.GetUID() != restored[title(old)]:
			wrong = append(wrong, title(old)+" was recreated")
		case owner != nil && slices.Contains(roots, owner.Kind):
			root := now[owner.Kind+" "+owner.Name]
			if root == nil || !metav1.IsControlledBy(live, root) {
				wrong = append(wrong, fmt.Sprintf("%s belongs to %v, not to %s %s", title(old), live.GetOwnerReferences(), owner.Kind, owner.Name))
			}
		}
		if old.GetKind() == "Secret" && live != nil && strings.Contains(old.GetName(), "postgres") {
			Expect(live.Object["data"]).To(Equal(old.Object["data"]), old.GetName())
		}
	}
	Expect(wrong).To(BeEmpty())
}

var _ = Describe("A restore of all objects", func() {
	It("is adopted in any order, with one set of children", func(ctx SpecContext) {
		resources := createAndWaitReady(ctx)
		before, ofServer := objectsIn(ctx, everykind.UserNamespace), ofMLflow(objectsIn(ctx, everykind.OperatorNamespace))
		server := framework.Unstructured(resources[slices.IndexFunc(resources, func(o *unstructured.Unstructured) bool { return o.GetKind() == "MLflow" })].GroupVersionKind(), "", "mlflow")
		env.Get(ctx, server)
		AddReportEntry("backed up", fmt.Sprint(names(before), names(ofServer)))

		By("losing all of it")
		loseNamespace(ctx, server, ofServer)

		By("restoring it")
		env.Namespace(ctx)
		backup := append(slices.Concat(before, ofServer), server)
		childrenFirst(backup)
		restored := restore(ctx, backup)
		env.WaitReady(ctx, resources)
		env.WaitIdle(manager.User, quiet, waitTimeout)

		after, server2 := append(objectsIn(ctx, everykind.UserNamespace), ofMLflow(objectsIn(ctx, everykind.OperatorNamespace))...), server.DeepCopy()
		Expect(names(after)).To(Equal(names(slices.Concat(before, ofServer))), "one set of children")
		env.Get(ctx, server2)
		expectTakenOver(append(slices.Concat(before, ofServer), server), append(after, server2), restored)
		env.ExpectIdle(manager.User, quiet)
	}, NodeTimeout(specTimeout))
})

// loseNamespace deletes the namespace, and the MLflow with its data.
func loseNamespace(ctx context.Context, server *unstructured.Unstructured, ofServer []*unstructured.Unstructured) {
	GinkgoHelper()
	Expect(env.Admin.Delete(ctx, server.DeepCopy())).To(Succeed())
	workshop := framework.NamespaceNamed(everykind.UserNamespace)
	Expect(env.Admin.Delete(ctx, workshop)).To(Succeed())
	env.WaitDeleted(ctx, server.DeepCopy())
	for _, object := range ofServer {
		if object.GetKind() == "PersistentVolumeClaim" {
			Expect(env.Admin.Delete(ctx, object.DeepCopy())).To(Succeed())
		}
		env.WaitDeleted(ctx, object.DeepCopy())
	}
	Eventually(func() error { return env.Admin.Get(ctx, client.ObjectKeyFromObject(workshop), workshop) }).
		WithContext(ctx).WithTimeout(waitTimeout).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
}
