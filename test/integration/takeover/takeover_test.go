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

// running has the state that must not change during a takeover. Pods are replaced once, by pods that lock the volume.
type running struct {
	Identities map[string]types.UID
	ClusterIP  string
	Volume     string
}

func (s *legacyServer) running(ctx context.Context) running {
	GinkgoHelper()
	r := running{Identities: map[string]types.UID{}}
	for _, child := range s.children {
		live := s.live(ctx, child)
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

// replicaSets returns the number of ReplicaSets.
func replicaSets(ctx context.Context) int {
	GinkgoHelper()
	sets := &appsv1.ReplicaSetList{}
	Expect(env.Admin.List(ctx, sets, client.InNamespace(namespace))).To(Succeed())
	return len(sets.Items)
}

// expectTakenOver checks the labels and owner references of a child.
func (s *legacyServer) expectTakenOver(ctx context.Context, child *unstructured.Unstructured) {
	GinkgoHelper()
	live := s.live(ctx, child)
	Expect(live.GetLabels()).To(And(
		HaveKeyWithValue("platform.opendatahub.io/operator", "odh-platform-operator"),
		HaveKeyWithValue("platform.opendatahub.io/component", "mlflow")), "%s %s", live.GetKind(), live.GetName())
	for key, value := range child.GetLabels() {
		Expect(live.GetLabels()).To(HaveKeyWithValue(key, value), "other software selects by it")
	}
	want := []metav1.OwnerReference{s.reference(child.GetKind())}
	if child.GetKind() == "PersistentVolumeClaim" {
		want = nil // [D23] data is retained after its server
	}
	Expect(live.GetOwnerReferences()).To(Equal(want), "%s %s", live.GetKind(), live.GetName())
}

var _ = Describe("A server of the legacy operator", func() {
	const (
		url     = "MLFLOW_URL=https://gateway.apps.lab.example.com"
		gateway = "GATEWAY_NAME=team-gateway"
		title   = "SECTION_TITLE=Team tools"
	)
	for _, c := range []struct {
		title, file string
		variables   []string
	}{
		{"with its data on a volume, and a link to an example URL [D29]", "minimal.yaml", nil},
		{"with remote stores", "remote.yaml", []string{url, gateway, title}},
		{"with a pod to the taste of its user", "customised.yaml", []string{url}},
	} {
		It("is taken over with one rollout, at one write for each object: "+c.title, func(ctx SpecContext) {
			s := createLegacyObjects(ctx, forceApply, "common.yaml", c.file)
			before, objects, sets := s.running(ctx), len(s.children), replicaSets(ctx)
			s.takeOver(ctx, c.variables...)
			if len(c.variables) == 0 {
				Expect(s.server.Status.URL).To(BeEmpty(), "the original took its example for a configured URL")
				for _, link := range s.removeKind("ConsoleLink") {
					env.WaitDeleted(ctx, link)
				}
				delete(before.Identities, "ConsoleLink/mlflow")
			}

			Expect(s.running(ctx)).To(Equal(before), "every uid, cluster IP and volume")
			Expect(replicaSets(ctx)).To(BeNumerically("<=", sets+1))
			for _, child := range s.children {
				s.expectTakenOver(ctx, child)
			}
			Expect(s.server.Status.Version).To(Equal("3.14.0"))
			Expect(meta.FindStatusCondition(s.server.Status.Conditions, "Migration")).To(HaveField("Reason", "MigrationSucceeded"))
			available := meta.FindStatusCondition(s.server.Status.Conditions, "Available")
			Expect(available.ObservedGeneration).To(Equal(s.server.Generation), "[D18]")

			counts := s.writeCounts()
			for object, count := range counts {
				if object != "mlflows/mlflow" { // its status follows the rollout
					Expect(count).To(Equal(1), "writes of %s:\n%s", object, s.writes())
				}
			}
			delete(counts, "poddisruptionbudgets/mlflow") // which the replaced operator lacks; only several replicas get one
			Expect(counts).To(HaveLen(objects+1), "every object and the status:\n%s", s.writes())
			env.ExpectIdle(s.manager.User, quiet)
		}, NodeTimeout(specTimeout))
	}

	for _, way := range []struct {
		title, stale string
		write        writer
		kept         bool
	}{
		{"by whole updates", "loses what only the original wanted", createOrUpdate, false},
		{"by kubectl apply, as after a restore from files", "keeps what is in the files of its user", kubectlApply, true},
	} {
		It("is taken over when its objects were written "+way.title, func(ctx SpecContext) {
			s := createLegacyObjects(ctx, way.write, "common.yaml", "minimal.yaml")
			s.removeKind("ConsoleLink")
			before := s.running(ctx)
			s.takeOver(ctx)
			Expect(s.running(ctx)).To(Equal(before))
			for _, child := range s.children {
				s.expectTakenOver(ctx, child)
				if child.GetKind() == "PersistentVolumeClaim" {
					continue // changed by a patch, and never applied
				}
				Expect(s.live(ctx, child).GetManagedFields()).NotTo(ContainElement(And(
					HaveField("Manager", originalManager), HaveField("Operation", metav1.ManagedFieldsOperationUpdate),
					HaveField("Subresource", ""))), "%s %s", child.GetKind(), child.GetName())
			}
			for object, count := range s.writeCounts() {
				if object == "mlflows/mlflow" {
					continue
				}
				Expect(count).To(BeNumerically("<=", 2), "one to adopt and one to apply %s:\n%s", object, s.writes())
			}
			env.ExpectIdle(s.manager.User, quiet)

			By("restarting the manager, which writes nothing")
			s.start = env.AuditPosition()
			s.manager.Restart(ctx)
			env.WaitIdle(s.manager.User, quiet, specTimeout)
			Expect(s.writes()).To(BeEmpty())
		}, NodeTimeout(specTimeout))

		It(way.stale+", written "+way.title, func(ctx SpecContext) {
			s := createLegacyObjects(ctx, withStaleFields(way.write), "common.yaml", "minimal.yaml")
			s.takeOver(ctx)
			s.expectStale(ctx, way.kept)
		}, NodeTimeout(specTimeout))
	}

	It("loses the fields that only the legacy operator set, and no others", func(ctx SpecContext) {
		s := createLegacyObjects(ctx, withStaleFields(forceApply), "common.yaml", "minimal.yaml")
		for _, child := range s.children {
			env.SetAnnotation(ctx, child, "example.com/added", "by the user")
		}
		s.removeKind("ConsoleLink")
		before := s.running(ctx)
		s.takeOver(ctx)
		Expect(s.running(ctx)).To(Equal(before))
		s.expectStale(ctx, false)
		for _, child := range s.children {
			Expect(s.live(ctx, child).GetAnnotations()).To(HaveKeyWithValue("example.com/added", "by the user"), child.GetKind())
		}
	}, NodeTimeout(specTimeout))
})

// staleLabel is a label that a release of the replaced operator set and this operator does not.
const staleLabel = "example.com/release-of-the-original"

func withStaleFields(write writer) writer {
	return func(ctx context.Context, object *unstructured.Unstructured) {
		GinkgoHelper()
		marked := object.DeepCopy()
		labels := marked.GetLabels()
		labels[staleLabel] = "2.0"
		marked.SetLabels(labels)
		write(ctx, marked)
	}
}

// expectStale checks whether the children still have staleLabel. PersistentVolumeClaims are never applied, and always keep it.
func (s *legacyServer) expectStale(ctx context.Context, kept bool) {
	GinkgoHelper()
	s.removeKind("ConsoleLink")
	for _, child := range s.removeKind("PersistentVolumeClaim") {
		Expect(s.live(ctx, child).GetLabels()).To(HaveKey(staleLabel))
		DeferCleanup(func(ctx SpecContext) { Expect(env.Admin.Delete(ctx, child)).To(Succeed()) }, NodeTimeout(specTimeout))
	}
	for _, child := range s.children {
		_, has := s.live(ctx, child).GetLabels()[staleLabel]
		Expect(has).To(Equal(kept), "%s %s", child.GetKind(), child.GetName())
	}
}

// removeKind removes a kind from the objects of the installation, and returns its objects.
func (s *legacyServer) removeKind(kind string) []*unstructured.Unstructured {
	var dropped []*unstructured.Unstructured
	s.children = slices.DeleteFunc(s.children, func(child *unstructured.Unstructured) bool {
		if child.GetKind() == kind {
			dropped = append(dropped, child)
		}
		return child.GetKind() == kind
	})
	return dropped
}

// writeCounts counts the manager's writes by resource and name.
func (s *legacyServer) writeCounts() map[string]int {
	GinkgoHelper()
	counts := map[string]int{}
	for _, write := range s.writes() {
		counts[write.Resource+"/"+write.Name]++
	}
	return counts
}
