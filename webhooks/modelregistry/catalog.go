package modelregistry

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
)

// catalogValidator answers the validating webhook of Catalog. It looks at new ones only.
type catalogValidator struct {
	settings Source
	others   find
}

// Handle implements admission.Handler.
func (v *catalogValidator) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	settings, err := v.settings(ctx)
	if err != nil {
		return unset(err)
	}
	errs := catalogErrors(request.Name, request.Namespace, settings)
	if settings.Namespace == "" && len(errs) == 0 {
		namespaces, err := v.others(ctx, request.Name)
		if err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("looking for another Catalog: %w", err))
		}
		errs = secondCatalog(request.Name, request.Namespace, namespaces)
	}
	return author.Invalid(aihubv1alpha1.GroupVersion.WithKind(aihubv1alpha1.Kind).GroupKind(), request.Name, errs)
}

// catalogErrors refuses a new Catalog of another name, or in another namespace than the configured one.
func catalogErrors(name, namespace string, s Settings) field.ErrorList {
	var errs field.ErrorList
	if name != aihubv1alpha1.CatalogName {
		detail := fmt.Sprintf("catalog resource name must be '%s'", aihubv1alpha1.CatalogName)
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), name, detail))
	}
	return append(errs, namespaceErrors(namespace, s.Namespace, "the catalog lives in")...)
}

// secondCatalog refuses a Catalog beside one in another namespace: they would share a host and cluster-wide rights.
func secondCatalog(name, namespace string, namespaces []string) field.ErrorList {
	for _, other := range namespaces {
		if other != namespace {
			detail := fmt.Sprintf("there is one Catalog in a cluster, and it exists in namespace %s already: use it, or delete it first", other)
			return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf("%s: %s", name, detail))}
		}
	}
	return nil
}
