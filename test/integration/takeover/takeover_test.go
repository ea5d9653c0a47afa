package takeover_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serverState is the state of a server that must not change during a take-over. Its pods are replaced at most once.
type serverState struct {
	Identities map[string]types.UID
	ClusterIP  string
	Volume     string
}

func (legacy *legacyServer) state(ctx context.Context) serverState {
	GinkgoHelper()
	r := serverState{Identities: map[string]types.UID{}}
	for _, child := range legacy.children {
		live := legacy.live(ctx, child)
		r.Identities[live.GetKind()+"/"+live.GetName()] = live.GetUID()
		switch live.GetKind() {
		case "Service":
			r.ClusterIP, _, _ = unstructured.NestedString(live.Object, "spec", "clusterIP")
		case "PersistentVolumeClaim":
			r.Volume, _, _ = unstructured.NestedString(live.Object, "spec", "volumeName")
		}
	}
	return r
}

func countReplicaSets(ctx context.Context) int {
	GinkgoHelper()
	sets := &appsv1.ReplicaSetList{}
	Expect(env.Admin.List(ctx, sets, client.InNamespace(namespace))).To(Succeed())
	return len(sets.Items)
}

// expectAdopted checks the labels and the owner references of a child object.
func (legacy *legacyServer) expectAdopted(ctx context.Context, child *unstructured.Unstructured) {
	GinkgoHelper()
	live := legacy.live(ctx, child)
	Expect(live.GetLabels()).To(And(
		HaveKeyWithValue("platform.opendatahub.io/operator", "odh-platform-operator"),
		HaveKeyWithValue("platform.opendatahub.io/component", "mlflow")), "%s %s", live.GetKind(), live.GetName())
	for key, value := range child.GetLabels() {
		Expect(live.GetLabels()).To(HaveKeyWithValue(key, value), "other clients may select objects by the label")
	}
	expected := []metav1.OwnerReference{legacy.ownerReference(child.GetKind())}
	if child.GetKind() == "PersistentVolumeClaim" {
		expected = nil // [D23] data is kept when its server is deleted
	}
	Expect(live.GetOwnerReferences()).To(Equal(expected), "%s %s", live.GetKind(), live.GetName())
}

var _ = Describe("A server of the legacy operator", func() {
	const (
		url     = "MLFLOW_URL=https://gateway.apps.lab.example.com"
		gateway = "GATEWAY_NAME=team-gateway"
		title   = "SECTION_TITLE=Team tools"
	)
	for _, testCase := range []struct {
		title, file string
		variables   []string
	}{
		{"with its data on a volume, and a link to an example URL [D29]", "minimal.yaml", nil},
		{"with remote stores", "remote.yaml", []string{url, gateway, title}},
		{"with a customised pod", "customised.yaml", []string{url}},
	} {
		It("is taken over with at most one rollout and one write for each object: "+testCase.title, func(ctx SpecContext) {
			legacy := createLegacyObjects(ctx, forceApply, "common.yaml", testCase.file)
			before, objects, sets := legacy.state(ctx), len(legacy.children), countReplicaSets(ctx)
			legacy.takeOver(ctx, testCase.variables...)
			if len(testCase.variables) == 0 {
				Expect(legacy.server.Status.URL).To(BeEmpty(), "the legacy operator published an example URL")
				for _, link := range legacy.removeKind("ConsoleLink") {
					env.WaitDeleted(ctx, link)
				}
				delete(before.Identities, "ConsoleLink/mlflow")
			}

			Expect(legacy.state(ctx)).To(Equal(before), "every uid, cluster IP and volume")
			Expect(countReplicaSets(ctx)).To(BeNumerically("<=", sets+1))
			for _, child := range legacy.children {
				legacy.expectAdopted(ctx, child)
			}
			Expect(legacy.server.Status.Version).To(Equal("3.14.0"))
			Expect(meta.FindStatusCondition(legacy.server.Status.Conditions, "Migration")).To(HaveField("Reason", "MigrationSucceeded"))
			available := meta.FindStatusCondition(legacy.server.Status.Conditions, "Available")
			Expect(available.ObservedGeneration).To(Equal(legacy.server.Generation), "[D18]")

			counts := legacy.writeCounts()
			for object, count := range counts {
				if object != "mlflows/mlflow" { // its status follows the rollout
					Expect(count).To(Equal(1), "writes of %s:\n%s", object, legacy.writes())
				}
			}
			delete(counts, "poddisruptionbudgets/mlflow") // the legacy operator did not create it
			Expect(counts).To(HaveLen(objects+1), "every object and the status:\n%s", legacy.writes())
			env.ExpectIdle(legacy.manager.User, idlePeriod)
		}, NodeTimeout(specTimeout))
	}

	for _, test := range []struct {
		title, outcome string
		write          writer
		kept           bool
	}{
		{"by create requests", "loses the fields that only the legacy operator set", createObject, false},
		{"by kubectl apply, as after a restore from files", "keeps the fields in the files of its user", kubectlApply, true},
	} {
		It("is taken over when its objects were written "+test.title, func(ctx SpecContext) {
			legacy := createLegacyObjects(ctx, test.write, "common.yaml", "minimal.yaml")
			legacy.removeKind("ConsoleLink")
			before := legacy.state(ctx)
			legacy.takeOver(ctx)
			Expect(legacy.state(ctx)).To(Equal(before))
			for _, child := range legacy.children {
				legacy.expectAdopted(ctx, child)
				if child.GetKind() == "PersistentVolumeClaim" {
					continue // changed by a patch, and never applied
				}
				Expect(legacy.live(ctx, child).GetManagedFields()).NotTo(ContainElement(And(
					HaveField("Manager", legacyFieldManager), HaveField("Operation", metav1.ManagedFieldsOperationUpdate),
					HaveField("Subresource", ""))), "%s %s", child.GetKind(), child.GetName())
			}
			for object, count := range legacy.writeCounts() {
				if object == "mlflows/mlflow" {
					continue
				}
				Expect(count).To(BeNumerically("<=", 2), "one to adopt and one to apply %s:\n%s", object, legacy.writes())
			}
			env.ExpectIdle(legacy.manager.User, idlePeriod)

			By("restarting the manager, which writes nothing")
			legacy.start = env.AuditPosition()
			legacy.manager.Restart(ctx)
			env.WaitIdle(legacy.manager.User, idlePeriod, specTimeout)
			Expect(legacy.writes()).To(BeEmpty())
		}, NodeTimeout(specTimeout))

		It(test.outcome+", written "+test.title, func(ctx SpecContext) {
			legacy := createLegacyObjects(ctx, withStaleLabel(test.write), "common.yaml", "minimal.yaml")
			legacy.takeOver(ctx)
			legacy.expectStaleLabel(ctx, test.kept)
		}, NodeTimeout(specTimeout))
	}

	It("loses the fields that only the legacy operator set, and no others", func(ctx SpecContext) {
		legacy := createLegacyObjects(ctx, withStaleLabel(forceApply), "common.yaml", "minimal.yaml")
		for _, child := range legacy.children {
			env.SetAnnotation(ctx, child, "example.com/added", "by the user")
		}
		legacy.removeKind("ConsoleLink")
		before := legacy.state(ctx)
		legacy.takeOver(ctx)
		Expect(legacy.state(ctx)).To(Equal(before))
		legacy.expectStaleLabel(ctx, false)
		for _, child := range legacy.children {
			Expect(legacy.live(ctx, child).GetAnnotations()).To(HaveKeyWithValue("example.com/added", "by the user"), child.GetKind())
		}
	}, NodeTimeout(specTimeout))
})

// staleLabel is a label that a release of the legacy operator set and this operator does not set.
const staleLabel = "example.com/legacy-release"

func withStaleLabel(write writer) writer {
	return func(ctx context.Context, object *unstructured.Unstructured) {
		GinkgoHelper()
		labelled := object.DeepCopy()
		labels := labelled.GetLabels()
		labels[staleLabel] = "2.0"
		labelled.SetLabels(labels)
		write(ctx, labelled)
	}
}

// expectStaleLabel checks whether the child objects still have staleLabel. PersistentVolumeClaims always keep it, because they are never
// applied.
func (legacy *legacyServer) expectStaleLabel(ctx context.Context, kept bool) {
	GinkgoHelper()
	legacy.removeKind("ConsoleLink")
	for _, child := range legacy.removeKind("PersistentVolumeClaim") {
		Expect(legacy.live(ctx, child).GetLabels()).To(HaveKey(staleLabel))
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, child)).To(Succeed()) }, NodeTimeout(specTimeout))
	}
	for _, child := range legacy.children {
		_, found := legacy.live(ctx, child).GetLabels()[staleLabel]
		Expect(found).To(Equal(kept), "%s %s", child.GetKind(), child.GetName())
	}
}

// removeKind removes the objects of a kind from the child objects that are checked, and returns them.
func (legacy *legacyServer) removeKind(kind string) []*unstructured.Unstructured {
	var objectsOfKind []*unstructured.Unstructured
	legacy.children = slices.DeleteFunc(legacy.children, func(child *unstructured.Unstructured) bool {
		if child.GetKind() == kind {
			objectsOfKind = append(objectsOfKind, child)
		}
		return child.GetKind() == kind
	})
	return objectsOfKind
}

// writeCounts returns the number of writes of the manager by resource and name.
func (legacy *legacyServer) writeCounts() map[string]int {
	GinkgoHelper()
	counts := map[string]int{}
	for _, write := range legacy.writes() {
		counts[write.Resource+"/"+write.Name]++
	}
	return counts
}
