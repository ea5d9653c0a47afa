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
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

func update(before, after client.Object) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: after}
}

// Frequent updates without an effect enqueue no reconcile.
func TestUpdatePredicates(t *testing.T) {
	now := metav1.Now()
	model := func(changes ...func(*v1beta1.InferenceService)) *v1beta1.InferenceService {
		return inference("digits", append([]func(*v1beta1.InferenceService){func(s *v1beta1.InferenceService) { s.UID = "one" }}, changes...)...)
	}
	deleted := func(finalizers ...string) *v1beta1.InferenceService {
		return model(func(s *v1beta1.InferenceService) { s.DeletionTimestamp, s.Finalizers = &now, finalizers })
	}
	raw := model(func(s *v1beta1.InferenceService) {
		s.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: "RawDeployment"}
	})
	unlabelled := deployment(1)
	unlabelled.Labels = nil
	for name, c := range map[string]struct {
		predicate predicate.Predicate
		event     event.UpdateEvent
		want      bool
	}{
		"status of a model":                  {modelmesh.SpecOrAnnotationsChanged(), update(model(), model()), false},
		"spec of a model":                    {modelmesh.SpecOrAnnotationsChanged(), update(model(), model(func(s *v1beta1.InferenceService) { s.Generation = 2 })), true},
		"annotation of a model":              {modelmesh.SpecOrAnnotationsChanged(), update(model(), raw), true},
		"a model is deleted":                 {modelmesh.SpecOrAnnotationsChanged(), update(model(), deleted(Finalizer)), true},
		"a finalizer less":                   {modelmesh.SpecOrAnnotationsChanged(), update(deleted("a", Finalizer), deleted(Finalizer)), true},
		"a finalizer less on a living model": {modelmesh.SpecOrAnnotationsChanged(), update(model(func(s *v1beta1.InferenceService) { s.Finalizers = []string{"a"} }), model()), false},
		"another model of the name":          {modelmesh.SpecOrAnnotationsChanged(), update(model(), inference("digits")), true},
		"a Predictor is written":             {modelmesh.CreatedOrDeleted(), update(predictor("p"), predictor("p")), false},
		"object with one of the names":       {hasName("a", "b"), update(nil, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b"}}), true},
		"another name":                       {hasName("a", "b"), update(nil, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "c"}}), false},
		"object got the managed label":       {reconciler.ManagedBy(modelmesh.ComponentName), update(unlabelled, deployment(0)), true},
		"object lost the managed label":      {reconciler.ManagedBy(modelmesh.ComponentName), update(deployment(0), unlabelled), true},
		"unmanaged object":                   {reconciler.ManagedBy(modelmesh.ComponentName), update(unlabelled, unlabelled), false},
		"object of another component":        {reconciler.ManagedBy(modelmesh.ComponentName), update(unlabelled, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: names.Labels("mlflow")}}), false},
	} {
		if got := c.predicate.Update(c.event); got != c.want {
			t.Errorf("%s: counts %t, want %t", name, got, c.want)
		}
	}
	for name, p := range map[string]predicate.Predicate{"models": modelmesh.SpecOrAnnotationsChanged(), "Predictors": modelmesh.CreatedOrDeleted()} {
		if !p.Create(event.CreateEvent{Object: model()}) || !p.Delete(event.DeleteEvent{Object: model()}) {
			t.Errorf("%s: their coming and going does not count", name)
		}
	}
}

// A ClusterRoleBinding enqueues its namespace.
func TestByBinding(t *testing.T) {
	for name, want := range map[string]string{
		BindingName("team"): "team", BindingName("a-b"): "a-b", "team-else": "", delegatorSuffix: "", BindingName("x" + delegatorSuffix): "x" + delegatorSuffix,
	} {
		object := capability.MetadataOf(delegatorKind)
		object.SetName(name)
		got := requestsForBinding(context.Background(), object)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0].Name != want) {
			t.Errorf("%s leads to %v, want %q", name, got, want)
		}
	}
}

// The cache of data connections holds only their keys and versions.
func TestDataConnectionCacheHoldsOnlyMetadata(t *testing.T) {
	head := capability.MetadataOf(secretKind)
	head.ObjectMeta = metav1.ObjectMeta{
		Namespace: "team", Name: "aws", UID: "u", ResourceVersion: "7", Labels: map[string]string{LabelManaged: "true"},
		Annotations:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "a whole Secret"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}, Finalizers: []string{"x"}, OwnerReferences: []metav1.OwnerReference{{Name: "x"}},
	}
	out, err := component.StripMetadata(head)
	got, ok := out.(*metav1.PartialObjectMetadata)
	if err != nil || !ok || got.Name != "aws" || got.UID != "u" || got.ResourceVersion != "7" ||
		len(got.Labels)+len(got.Annotations)+len(got.ManagedFields)+len(got.Finalizers)+len(got.OwnerReferences) > 0 {
		t.Errorf("held is %+v, error %v", out, err)
	}
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "team/aws"}
	if out, err := component.StripMetadata(tombstone); err != nil || out != any(tombstone) {
		t.Errorf("StripMetadata of a tombstone returned %v, error %v, want it unchanged", out, err)
	}
}

// Versions identify the objects and their states.
func TestVersionsIdentifyObjects(t *testing.T) {
	head := func(name, version string) *metav1.PartialObjectMetadata {
		h := capability.MetadataOf(secretKind)
		h.Name, h.UID, h.ResourceVersion = name, "u", version
		return h
	}
	seen := map[string]bool{}
	for _, heads := range [][]*metav1.PartialObjectMetadata{
		nil, {head("a", "1")}, {head("a", "2")}, {head("b", "1")}, {head("a", "1"), head("b", "1")}, {head("a", "1"), nil, head("c", "1")},
	} {
		seen[joinVersions(heads)] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d different of 6", len(seen))
	}
	if joinVersions([]*metav1.PartialObjectMetadata{head("a", "1"), nil}) != joinVersions([]*metav1.PartialObjectMetadata{head("a", "1")}) {
		t.Error("a missing object changed the joined versions")
	}
}

// Objects of users are not cached in full.
func TestCaches(t *testing.T) {
	for _, need := range append(Caches(), runtimes.Caches("")...) {
		if need.IncludeForeign && need.FullObjects && (need.Kind == secretKind || need.Kind == configMapKind) {
			t.Errorf("%s: all of them are held whole", need.Kind.Kind)
		}
	}
	if len(Caches()) != len(component.FullObjectKinds([]component.Component{{Caches: Caches()}}))+7 {
		t.Errorf("what is made here is held as metadata: %+v", Caches())
	}
}
