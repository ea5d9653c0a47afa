package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	pkgadmission "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

// restMapper is the subset of meta.RESTMapper that the webhook needs. It queries the API server for unknown kinds.
type restMapper interface {
	RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// creationValidator validates an AppWrapper that a user creates, or starts with an update.
type creationValidator struct {
	wrapper   *v1beta2.AppWrapper
	namespace string
	user      authenticationv1.UserInfo
	mapper    restMapper
	access    pkgadmission.Access // nil if the settings disable access reviews
	// podSetLimit returns the maximum number of pod sets in a Workload.
	podSetLimit func(context.Context) int

	errs        field.ErrorList
	podSetCount int
	// unauthorized reports whether the user lacks a permission.
	unauthorized bool
	// podSetsUnknown reports whether podSetCount may be incomplete.
	podSetsUnknown bool
}

// validate returns the errors of the components, in their order, and then of the AppWrapper.
func (c *creationValidator) validate(ctx context.Context) field.ErrorList {
	path := field.NewPath("spec", "components")
	if c.access != nil && c.user.Username == "" {
		c.errs = append(c.errs, field.InternalError(path, errors.New("the request names no user")))
	}
	for i := range c.wrapper.Spec.Components {
		if len(c.errs) >= pkgadmission.MaxErrors {
			c.podSetsUnknown = true
			c.errs = append(c.errs, field.Forbidden(path.Index(i), "the rest was not checked, because the request has too many errors: correct those first"))
			break
		}
		c.checkComponent(ctx, &c.wrapper.Spec.Components[i], path.Index(i))
	}
	switch {
	case c.podSetCount == 0 && !c.podSetsUnknown:
		c.errs = append(c.errs, field.Invalid(path, c.podSetCount, "components contains no podspecs: add a component that creates pods; "+
			"for a kind that the operator does not know, list the paths of its pod templates in podSets"))
	case c.podSetCount > maxPodSets:
		if maximum := c.podSetLimit(ctx); c.podSetCount > maximum {
			detail := fmt.Sprintf("components contains %d podspecs; at most %d are allowed: remove some, or use several AppWrappers", c.podSetCount, maximum)
			c.errs = append(c.errs, field.Invalid(path, c.podSetCount, detail))
		}
	}
	c.errs = append(c.errs, validateName(c.wrapper, c.podSetCount)...)
	return c.errs
}

func (c *creationValidator) checkComponent(ctx context.Context, component *v1beta2.AppWrapperComponent, path *field.Path) {
	template := path.Child("template")
	object := c.decode(component, template)
	if object == nil {
		c.podSetCount, c.podSetsUnknown = c.podSetCount+len(component.PodSets), true
		return
	}
	c.checkKind(ctx, object, template)
	if namespace := object.GetNamespace(); namespace != "" && namespace != c.namespace {
		c.errs = append(c.errs, field.Forbidden(template.Child("metadata", "namespace"), "AppWrappers cannot create objects in other namespaces: remove metadata.namespace, or create the AppWrapper in that namespace"))
	}
	count, known, errs := podset.Check(component.PodSets, object, path)
	c.podSetCount, c.podSetsUnknown = c.podSetCount+count, c.podSetsUnknown || !known
	c.errs = append(c.errs, errs...)
	if isQueued(c.wrapper) {
		c.errs = append(c.errs, quotaErrors(component, object, path, unknownFieldCause)...)
	}
}

// decode returns the decoded template of a component, or nil after it has recorded an error. The error begins with the text of the
// CodeFlare operator, even if the template is valid JSON, such as one without kind.
func (c *creationValidator) decode(component *v1beta2.AppWrapperComponent, template *field.Path) *unstructured.Unstructured {
	object, err := decodeTemplate(component)
	if err != nil {
		c.errs = append(c.errs, field.Invalid(template, redact.Clip(string(component.Template.Raw), maxShownBytes), "failed to decode as JSON: "+err.Error()))
		return nil
	}
	return object
}

// decodeTemplate decodes a template as the controller does, and rejects an apiVersion or metadata that the controller would misread.
func decodeTemplate(component *v1beta2.AppWrapperComponent) (*unstructured.Unstructured, error) {
	object, err := podset.Decode(component)
	if err != nil {
		return nil, err
	}
	if _, err := schema.ParseGroupVersion(object.GetAPIVersion()); err != nil {
		return nil, err
	}
	if metadata := object.Object["metadata"]; metadata != nil {
		if _, isMap := metadata.(map[string]any); !isMap {
			return nil, errors.New("metadata is not an object")
		}
	}
	return object, nil
}

// maxShownBytes limits the part of an invalid template that the error message quotes.
const maxShownBytes = 60

// checkKind rejects kinds that are not served or not allowed in AppWrappers, and objects that the user may not create.
func (c *creationValidator) checkKind(ctx context.Context, object *unstructured.Unstructured, path *field.Path) {
	kind := object.GroupVersionKind()
	if isAppWrapper(kind) { // before the mapper, whose error would hide this one
		c.errs = append(c.errs, field.Forbidden(path, nestedAppWrapper))
		return
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		c.podSetsUnknown = true
		detail := "the cluster serves no " + kind.GroupKind().String() + " in version " + kind.Version + ": install its CustomResourceDefinition first, or correct apiVersion and kind"
		c.errs = append(c.errs, field.Invalid(path, kind.Kind, detail))
		return
	case err != nil:
		c.errs = append(c.errs, field.InternalError(path, fmt.Errorf("finding the resource of %s: %w", kind.GroupKind().String(), err)))
		return
	}
	if problem := KindProblem(mapping); problem != "" {
		c.errs = append(c.errs, field.Forbidden(path, problem))
		return
	}
	if c.access == nil || c.user.Username == "" {
		return
	}
	for _, permission := range requiredPermissions(object, mapping.Resource, c.namespace) {
		allowed, err := c.access(ctx, c.user, permission)
		switch {
		case err != nil:
			c.errs = append(c.errs, field.InternalError(path, fmt.Errorf("checking whether %s may create %s: %w", c.user.Username, pkgadmission.ResourceName(permission), err)))
		case !allowed:
			detail := fmt.Sprintf("User %s is not authorized to create %s in %s: grant the user this permission", c.user.Username, pkgadmission.ResourceName(permission), c.namespace)
			c.errs, c.unauthorized = append(c.errs, field.Forbidden(path, detail)), true
		}
	}
}

// validateName rejects names that Kueue or the API server would reject later: the name is a label value on every component, and Kueue uses the
// name with the number of a pod set as a DNS label.
func validateName(wrapper *v1beta2.AppWrapper, podSetCount int) field.ErrorList {
	path := field.NewPath("metadata", "name")
	maxLength := validation.DNS1123LabelMaxLength - len("-") - len(strconv.Itoa(max(0, podSetCount-1)))
	if length := len(wrapper.Name); length > maxLength {
		detail := fmt.Sprintf("must be at most %d characters: it is used as a label value on the components and, followed by a number, as the name of a pod set; this name has %d",
			maxLength, length)
		return field.ErrorList{field.Invalid(path, wrapper.Name, detail)}
	}
	return validateQueuedName(wrapper)
}

// validateQueuedName rejects a name with dots if the AppWrapper is queued.
func validateQueuedName(wrapper *v1beta2.AppWrapper) field.ErrorList {
	if !isQueued(wrapper) || !strings.Contains(wrapper.Name, ".") {
		return nil
	}
	detail := "must have no dots if the AppWrapper has a queue name: Kueue derives DNS labels from metadata.name"
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), wrapper.Name, detail)}
}
