package openshift

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/runtimes"
	"github.com/odh-platform/odh-platform-operator/pkg/caches"
	"github.com/odh-platform/odh-platform-operator/pkg/managercache"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

func updateEvent(oldObject, newObject client.Object) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: oldObject, ObjectNew: newObject}
}

// Predicates drop frequent updates that require no reconcile.
func TestUpdatePredicates(t *testing.T) {
	now := metav1.Now()
	model := func(changes ...func(*v1beta1.InferenceService)) *v1beta1.InferenceService {
		return newInferenceService("digits", append([]func(*v1beta1.InferenceService){func(s *v1beta1.InferenceService) { s.UID = "one" }}, changes...)...)
	}
	deleted := func(finalizers ...string) *v1beta1.InferenceService {
		return model(func(s *v1beta1.InferenceService) { s.DeletionTimestamp, s.Finalizers = &now, finalizers })
	}
	otherMode := model(func(s *v1beta1.InferenceService) {
		s.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: "RawDeployment"}
	})
	unlabelled := newDeployment(1)
	unlabelled.Labels = nil
	for name, c := range map[string]struct {
		predicate predicate.Predicate
		event     event.UpdateEvent
		want      bool
	}{
		"status of an InferenceService":               {modelmesh.SpecOrAnnotationsChanged(), updateEvent(model(), model()), false},
		"spec of an InferenceService":                 {modelmesh.SpecOrAnnotationsChanged(), updateEvent(model(), model(func(s *v1beta1.InferenceService) { s.Generation = 2 })), true},
		"annotation of an InferenceService":           {modelmesh.SpecOrAnnotationsChanged(), updateEvent(model(), otherMode), true},
		"deleted InferenceService":                    {modelmesh.SpecOrAnnotationsChanged(), updateEvent(model(), deleted("b")), true},
		"finalizer removed from a terminating object": {modelmesh.SpecOrAnnotationsChanged(), updateEvent(deleted("a", "b"), deleted("b")), true},
		"finalizer removed":                           {modelmesh.SpecOrAnnotationsChanged(), updateEvent(model(func(s *v1beta1.InferenceService) { s.Finalizers = []string{"a"} }), model()), false},
		"recreated InferenceService":                  {modelmesh.SpecOrAnnotationsChanged(), updateEvent(model(), newInferenceService("digits")), true},
		"updated Predictor":                           {modelmesh.CreatedOrDeleted(), updateEvent(newPredictor("p"), newPredictor("p")), false},
		"object with one of the names":                {hasName("a", "b"), updateEvent(nil, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b"}}), true},
		"object with another name":                    {hasName("a", "b"), updateEvent(nil, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c"}}), false},
		"managed label added":                         {reconciler.ManagedBy(modelmesh.ComponentName), updateEvent(unlabelled, newDeployment(0)), true},
		"managed label removed":                       {reconciler.ManagedBy(modelmesh.ComponentName), updateEvent(newDeployment(0), unlabelled), true},
		"unmanaged object":                            {reconciler.ManagedBy(modelmesh.ComponentName), updateEvent(unlabelled, unlabelled), false},
		"object of another component":                 {reconciler.ManagedBy(modelmesh.ComponentName), updateEvent(unlabelled, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: names.Labels("mlflow")}}), false},
	} {
		if got := c.predicate.Update(c.event); got != c.want {
			t.Errorf("%s: Update returned %t, want %t", name, got, c.want)
		}
	}
	for name, p := range map[string]predicate.Predicate{"models": modelmesh.SpecOrAnnotationsChanged(), "Predictors": modelmesh.CreatedOrDeleted()} {
		if !p.Create(event.CreateEvent{Object: model()}) || !p.Delete(event.DeleteEvent{Object: model()}) {
			t.Errorf("%s: the predicate dropped a create or delete event", name)
		}
	}
}

// A ClusterRoleBinding enqueues the namespace in its name.
func TestRequestsForBinding(t *testing.T) {
	for name, want := range map[string]string{
		BindingName("team"): "team", BindingName("a-b"): "a-b", "team-other": "", delegatorSuffix: "", BindingName("x" + delegatorSuffix): "x" + delegatorSuffix,
	} {
		object := objectmeta.New(delegatorKind)
		object.SetName(name)
		got := requestsForBinding(context.Background(), object)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0].Name != want) {
			t.Errorf("%s enqueues %v, want %q", name, got, want)
		}
	}
}

// The cache of data connections contains only their names, UIDs and versions.
func TestDataConnectionCacheHoldsOnlyMetadata(t *testing.T) {
	metadata := objectmeta.New(secretKind)
	metadata.ObjectMeta = metav1.ObjectMeta{
		Namespace: "team", Name: "aws", UID: "u", ResourceVersion: "7", Labels: map[string]string{LabelManaged: "true"},
		Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "the whole Secret"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}, Finalizers: []string{"x"}, OwnerReferences: []metav1.OwnerReference{{Name: "x"}},
	}
	out, err := caches.StripMetadata(metadata)
	got, ok := out.(*metav1.PartialObjectMetadata)
	if err != nil || !ok || got.Name != "aws" || got.UID != "u" || got.ResourceVersion != "7" ||
		len(got.Labels)+len(got.Annotations)+len(got.ManagedFields)+len(got.Finalizers)+len(got.OwnerReferences) > 0 {
		t.Errorf("StripMetadata returned %+v, error %v", out, err)
	}
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "team/aws"}
	if out, err := caches.StripMetadata(tombstone); err != nil || out != any(tombstone) {
		t.Errorf("StripMetadata of a tombstone returned %v, error %v, want it unchanged", out, err)
	}
}

// joinVersions returns different strings for different objects or versions.
func TestJoinVersions(t *testing.T) {
	metadataOf := func(name, version string) *metav1.PartialObjectMetadata {
		m := objectmeta.New(secretKind)
		m.Name, m.UID, m.ResourceVersion = name, "u", version
		return m
	}
	seen := map[string]bool{}
	for _, objects := range [][]*metav1.PartialObjectMetadata{
		nil, {metadataOf("a", "1")}, {metadataOf("a", "2")}, {metadataOf("b", "1")}, {metadataOf("a", "1"), metadataOf("b", "1")}, {metadataOf("a", "1"), nil, metadataOf("c", "1")},
	} {
		seen[joinVersions(objects)] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d different strings, want 6", len(seen))
	}
	if joinVersions([]*metav1.PartialObjectMetadata{metadataOf("a", "1"), nil}) != joinVersions([]*metav1.PartialObjectMetadata{metadataOf("a", "1")}) {
		t.Error("a nil object changed the joined versions")
	}
}

// Foreign Secrets and ConfigMaps are not cached in full, and this package caches only metadata.
func TestCaches(t *testing.T) {
	for _, need := range append(Caches(), runtimes.Caches("")...) {
		if need.IncludeForeign && need.FullObjects && (need.Kind == secretKind || need.Kind == configMapKind) {
			t.Errorf("%s: foreign objects are cached in full", need.Kind.Kind)
		}
	}
	if full := managercache.FullObjectKinds(Caches()); len(full) > 0 {
		t.Errorf("full objects of %v are cached, want only metadata", full)
	}
}
