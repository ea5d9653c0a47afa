package platform

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const (
	// LabelRegistries marks namespaces for registries, created by this operator or chosen by administrators.
	LabelRegistries = "platform.opendatahub.io/registries"
	// labelGenerated marks namespaces that the platform created.
	labelGenerated = "opendatahub.io/generated-namespace"
	labelTrue      = "true"
)

// reservedNamespaceProblem returns why a namespace must not be used, or "".
func reservedNamespaceProblem(name string) string {
	if name != metav1.NamespaceDefault && name != "openshift" && !strings.HasPrefix(name, "kube-") && !strings.HasPrefix(name, "openshift-") {
		return ""
	}
	return fmt.Sprintf("spec.instancesNamespace %q belongs to the cluster: name another namespace", name)
}

// ensureNamespace creates the namespace of registries, unless it is the application namespace. The namespace has no owner, so that data
// survives the AIHub. An existing namespace is accepted only if it contains the Catalog, has LabelRegistries or labelGenerated, or is named
// in the settings, because its users can read the shared database.
func (r *aiHub) ensureNamespace(ctx context.Context, a *platformv1alpha1.AIHub) error {
	name := a.Spec.InstancesNamespace
	if hasCatalog, err := r.hasCatalogIn(ctx, a, name); hasCatalog || err != nil {
		return err
	}
	configured := name == r.settings.Namespace || name == r.settings.RegistriesNamespace
	if problem := reservedNamespaceProblem(name); problem != "" && !configured {
		return &reconciler.Wait{For: problem, Stalled: true}
	}
	namespace := objectmeta.New(namespaceKind)
	switch err := r.cached.Get(ctx, client.ObjectKey{Name: name}, namespace); {
	case apierrors.IsNotFound(err) && name == a.Spec.ApplicationNamespace:
		return nil
	case apierrors.IsNotFound(err):
		return r.createNamespace(ctx, name)
	case err != nil || configured || namespace.UID != "" && namespace.UID == r.acceptedUID:
		return err
	}
	return r.checkNamespaceLabels(ctx, name)
}

// checkNamespaceLabels returns a Wait for a namespace that has neither LabelRegistries nor labelGenerated.
func (r *aiHub) checkNamespaceLabels(ctx context.Context, name string) error {
	list := &corev1.NamespaceList{} // the cache omits labels
	if err := r.apiReader.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	for _, n := range list.Items {
		if n.Labels[LabelRegistries] != labelTrue && n.Labels[labelGenerated] != labelTrue {
			return &reconciler.Wait{For: fmt.Sprintf("namespace %s (spec.instancesNamespace) exists and was not created by this operator: its users could read the database "+
				"of the catalog; if administrators provide it, run kubectl label namespace %s %s=%s, otherwise name another namespace", name, name, LabelRegistries, labelTrue),
				Stalled: true, Retry: reconciler.RequeueBlocked}
		}
		r.acceptedUID = n.UID
	}
	return nil
}

// hasCatalogIn reports whether the Catalog of the AIHub is in a namespace.
func (r *aiHub) hasCatalogIn(ctx context.Context, a *platformv1alpha1.AIHub, name string) (bool, error) {
	if !r.served().Has(catalogKind) {
		return false, nil
	}
	catalog := &aihubv1alpha1.Catalog{}
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: name, Name: aihubv1alpha1.CatalogName}, catalog)
	return err == nil && metav1.IsControlledBy(catalog, a), client.IgnoreNotFound(err)
}

func (r *aiHub) createNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{LabelRegistries: labelTrue}}}
	switch err := r.cached.Create(ctx, namespace, client.FieldOwner(AIHubFieldOwner)); {
	case apierrors.IsAlreadyExists(err):
		return &reconciler.Wait{For: "namespace " + name + " to appear in the cache", Retry: reconciler.RequeueSoon}
	case err != nil:
		return fmt.Errorf("creating namespace %s (spec.instancesNamespace): %w", name, err)
	}
	r.acceptedUID = namespace.UID
	return nil
}
