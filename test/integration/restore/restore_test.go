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

// customResourceKinds are the kinds of custom resources in the order of the restore. AppWrapper is last, because AppWrappers can own the others.
var customResourceKinds = []string{"Catalog", "InferenceService", "MLflow", "MLflowConfig", "ModelRegistry", "Predictor", "RayCluster", "ServingRuntime", "AppWrapper"}

func kindAndName(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + object.GetName()
}

// sortChildrenFirst sorts child objects, in random order, before custom resources. ServiceAccounts are first, because Pods require them.
func sortChildrenFirst(objects []*unstructured.Unstructured) {
	rank := func(o *unstructured.Unstructured) int {
		if o.GetKind() == "ServiceAccount" {
			return -2
		}
		return slices.Index(customResourceKinds, o.GetKind())
	}
	rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
}

// filterMLflowObjects returns the objects that belong to the MLflow.
func filterMLflowObjects(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		owner := metav1.GetControllerOf(o)
		return o.GetName() != "mlflow-pvc" && (owner == nil || owner.Kind != "MLflow")
	})
}

// restore creates the objects that do not exist, and returns the UIDs of the created ones by kind and name.
func restore(ctx context.Context, objects []*unstructured.Unstructured) map[string]types.UID {
	GinkgoHelper()
	restored := map[string]types.UID{}
	for _, object := range objects {
		o := stripForRestore(object)
		var exists bool
		Eventually(func() error {
			err := env.Admin.Create(ctx, o)
			if exists = apierrors.IsAlreadyExists(err); exists {
				return nil
			}
			return err
		}).WithContext(ctx).WithTimeout(waitTimeout).Should(Succeed(), kindAndName(o))
		if !exists {
			restored[kindAndName(o)] = o.GetUID()
		}
	}
	return restored
}

// sortedKindsAndNames returns the kind and name of each object, except ReplicaSets and Pods, which rollouts replace. It includes the Pods
// of AppWrappers.
func sortedKindsAndNames(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		if o.GetKind() != "ReplicaSet" && (o.GetKind() != "Pod" || isOwnedByAppWrapper(o)) {
			all = append(all, kindAndName(o))
		}
	}
	slices.Sort(all)
	return all
}

func isOwnedByAppWrapper(object *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.Kind == "AppWrapper"
}

// expectAdopted checks that the restored objects were not recreated and have owner references to the restored custom resources.
func expectAdopted(before, after []*unstructured.Unstructured, restored map[string]types.UID) {
	GinkgoHelper()
	liveObjects := map[string]*unstructured.Unstructured{}
	for _, o := range after {
		liveObjects[kindAndName(o)] = o
	}
	var problems []string
	for _, original := range before {
		live, owner := liveObjects[kindAndName(original)], metav1.GetControllerOf(original)
		switch {
		case original.GetKind() == "ReplicaSet" || original.GetKind() == "Pod" && !isOwnedByAppWrapper(original):
		case live == nil:
			problems = append(problems, kindAndName(original)+" is missing")
		case original.GetLabels()["platform.opendatahub.io/component"] == "modelmesh":
			// The controller deletes ModelMesh objects while no ServingRuntime exists; they contain no data.
		case restored[kindAndName(original)] != "" && live.GetUID() != restored[kindAndName(original)]:
			problems = append(problems, kindAndName(original)+" was recreated")
		case owner != nil && slices.Contains(customResourceKinds, owner.Kind):
			liveOwner := liveObjects[owner.Kind+" "+owner.Name]
			if liveOwner == nil || !metav1.IsControlledBy(live, liveOwner) {
				problems = append(problems, fmt.Sprintf("%s belongs to %v, not to %s %s", kindAndName(original), live.GetOwnerReferences(), owner.Kind, owner.Name))
			}
		}
		if original.GetKind() == "Secret" && live != nil && strings.Contains(original.GetName(), "postgres") {
			Expect(live.Object["data"]).To(Equal(original.Object["data"]), original.GetName())
		}
	}
	Expect(problems).To(BeEmpty())
}

var _ = Describe("The manager after a restore of all objects", func() {
	It("adopts restored child objects in any order, without duplicates", func(ctx SpecContext) {
		resources := createAndWaitReady(ctx)
		before, mlflowObjects := listObjects(ctx, everykind.UserNamespace), filterMLflowObjects(listObjects(ctx, everykind.OperatorNamespace))
		mlflow := framework.Unstructured(resources[slices.IndexFunc(resources, func(o *unstructured.Unstructured) bool { return o.GetKind() == "MLflow" })].GroupVersionKind(), "", "mlflow")
		env.Get(ctx, mlflow)
		AddReportEntry("backed up", fmt.Sprint(sortedKindsAndNames(before), sortedKindsAndNames(mlflowObjects)))

		By("deleting all objects")
		deleteAll(ctx, mlflow, mlflowObjects)

		By("restoring the objects")
		env.Namespace(ctx)
		backup := append(slices.Concat(before, mlflowObjects), mlflow)
		sortChildrenFirst(backup)
		restored := restore(ctx, backup)
		env.WaitReady(ctx, resources)
		env.WaitIdle(manager.User, idlePeriod, waitTimeout)

		after, restoredMLflow := append(listObjects(ctx, everykind.UserNamespace), filterMLflowObjects(listObjects(ctx, everykind.OperatorNamespace))...), mlflow.DeepCopy()
		Expect(sortedKindsAndNames(after)).To(Equal(sortedKindsAndNames(slices.Concat(before, mlflowObjects))), "no child object is duplicated")
		env.Get(ctx, restoredMLflow)
		expectAdopted(append(slices.Concat(before, mlflowObjects), mlflow), append(after, restoredMLflow), restored)
		env.ExpectIdle(manager.User, idlePeriod)
	}, NodeTimeout(specTimeout))
})

// deleteAll deletes the namespace of the user, and the MLflow with its data.
func deleteAll(ctx context.Context, mlflow *unstructured.Unstructured, mlflowObjects []*unstructured.Unstructured) {
	GinkgoHelper()
	Expect(env.Admin.Delete(ctx, mlflow.DeepCopy())).To(Succeed())
	userNamespace := framework.NamespaceNamed(everykind.UserNamespace)
	Expect(env.Admin.Delete(ctx, userNamespace)).To(Succeed())
	env.WaitDeleted(ctx, mlflow.DeepCopy())
	for _, object := range mlflowObjects {
		if object.GetKind() == "PersistentVolumeClaim" {
			Expect(env.Admin.Delete(ctx, object.DeepCopy())).To(Succeed())
		}
		env.WaitDeleted(ctx, object.DeepCopy())
	}
	Eventually(func() error { return env.Admin.Get(ctx, client.ObjectKeyFromObject(userNamespace), userNamespace) }).
		WithContext(ctx).WithTimeout(waitTimeout).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
}
