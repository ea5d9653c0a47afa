package appwrapper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	author "github.com/odh-platform/odh-platform-operator/pkg/admission"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// kinds says which resource a kind is, as a meta.RESTMapper does. It asks the cluster again about what it does not know.
type restMapper interface {
	RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// creation is a request to create an AppWrapper, and what is needed to judge it.
type creation struct {
	wrapper   *v1beta2.AppWrapper
	namespace string
	user      authenticationv1.UserInfo
	mapper    restMapper
	access    author.Access // nil when no reviews are wanted
	// most returns how many pod sets one workload may have.
	maxPodSets func(context.Context) int

	errs    field.ErrorList
	podSets int
	// unauthorized: the user may not create something.
	unauthorized bool
	// unreadable: a component could not be judged, so the number of pod sets is not known.
	podSetsUnknown bool
	// answers of the reviews of this request, so that eight Pods cost one question.
	answers map[authorizationv1.ResourceAttributes]bool
}

// judge applies every rule and returns all violations, those of the components in their order first.
func (c *creation) validate(ctx context.Context) field.ErrorList {
	path := field.NewPath("spec", "components")
	if c.access != nil && c.user.Username == "" {
		c.errs = append(c.errs, field.InternalError(path, errors.New("the request names no user")))
	}
	for i := range c.wrapper.Spec.Components {
		if len(c.errs) >= author.MaxErrors {
			c.podSetsUnknown = true
			c.errs = append(c.errs, field.Forbidden(path.Index(i), "the rest was not checked, because there are too many errors before it: correct them first"))
			break
		}
		c.checkComponent(ctx, &c.wrapper.Spec.Components[i], path.Index(i))
	}
	switch {
	case c.podSets == 0 && !c.podSetsUnknown:
		c.errs = append(c.errs, field.Invalid(path, c.podSets, "components contains no podspecs: add a component that makes pods; "+
			"for a kind that is not known here, name the paths of its pod templates in podSets"))
	case c.podSets > maxPodSets:
		if most := c.maxPodSets(ctx); c.podSets > most {
			detail := fmt.Sprintf("components contains %d podspecs; at most %d are allowed", c.podSets, most)
			c.errs = append(c.errs, field.Invalid(path, c.podSets, detail))
		}
	}
	c.errs = append(c.errs, nameErrors(c.wrapper, c.podSets)...)
	return c.errs
}

func (c *creation) checkComponent(ctx context.Context, component *v1beta2.AppWrapperComponent, path *field.Path) {
	template := path.Child("template")
	object := c.decode(component, template)
	if object == nil {
		c.podSets, c.podSetsUnknown = c.podSets+len(component.PodSets), true
		return
	}
	c.checkKind(ctx, object, template)
	if namespace := object.GetNamespace(); namespace != "" && namespace != c.namespace {
		c.errs = append(c.errs, field.Forbidden(template.Child("metadata", "namespace"), "AppWrappers cannot create objects in other namespaces: remove the namespace, or create the AppWrapper in it"))
	}
	count, known, errs := podset.Check(component.PodSets, object, path)
	c.podSets, c.podSetsUnknown = c.podSets+count, c.podSetsUnknown || !known
	c.errs = append(c.errs, errs...)
	if isQueued(c.wrapper) {
		c.errs = append(c.errs, quotaErrors(component, object, path, neverStarted)...)
	}
}

// decode reads the template of a component; nil for one that it refuses.
func (c *creation) decode(component *v1beta2.AppWrapperComponent, template *field.Path) *unstructured.Unstructured {
	object, err := decodeTemplate(component)
	if err != nil {
		c.errs = append(c.errs, field.Invalid(template, conditions.Clip(string(component.Template.Raw), maxShownBytes), "failed to decode as JSON: "+err.Error()))
		return nil
	}
	return object
}

// decodeTemplate reads a template as the controller will, and refuses what would be read as something else later.
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
			return nil, errors.New("metadata is no object")
		}
	}
	return object, nil
}

// maxShown bounds what a message shows of a template that cannot be read, in bytes.
const maxShownBytes = 60

// kind refuses what no AppWrapper may create, and what its user may not.
func (c *creation) checkKind(ctx context.Context, object *unstructured.Unstructured, path *field.Path) {
	kind := object.GroupVersionKind()
	if isAppWrapper(kind) { // before the API server is queried: a failed query must not let it through
		c.errs = append(c.errs, field.Forbidden(path, nestedRefusal))
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
	if refusal := KindProblem(mapping); refusal != "" {
		c.errs = append(c.errs, field.Forbidden(path, refusal))
		return
	}
	if c.access == nil || c.user.Username == "" {
		return
	}
	for _, right := range requiredRights(object, mapping.Resource, c.namespace) {
		allowed, err := c.isAllowed(ctx, right)
		switch {
		case err != nil:
			c.errs = append(c.errs, field.InternalError(path, fmt.Errorf("asking whether %s may create %s: %w", c.user.Username, resourceName(right), err)))
		case !allowed:
			detail := fmt.Sprintf("User %s is not authorized to create %s in %s", c.user.Username, resourceName(right), c.namespace)
			c.errs, c.unauthorized = append(c.errs, field.Forbidden(path, detail)), true
		}
	}
}

func (c *creation) isAllowed(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	if allowed, known := c.answers[right]; known {
		return allowed, nil
	}
	allowed, err := c.access(ctx, c.user, right)
	if err == nil {
		if c.answers == nil {
			c.answers = map[authorizationv1.ResourceAttributes]bool{}
		}
		c.answers[right] = allowed
	}
	return allowed, err
}

// nameErrors refuses names that would fail later: the name is the value of a label on every component, and Kueue makes
// DNS labels out of it, one per pod set, with the number of the set at the end.
func nameErrors(wrapper *v1beta2.AppWrapper, podSets int) field.ErrorList {
	path := field.NewPath("metadata", "name")
	longest := validation.DNS1123LabelMaxLength - len("-") - len(strconv.Itoa(max(0, podSets-1)))
	if length := len(wrapper.Name); length > longest {
		detail := fmt.Sprintf("must be at most %d characters: it is a label of the components, and with a number behind it the name of a pod set; this one has %d",
			longest, length)
		return field.ErrorList{field.Invalid(path, wrapper.Name, detail)}
	}
	if wrapper.Labels[v1beta2.LabelQueue] != "" && strings.Contains(wrapper.Name, ".") {
		detail := "must have no dots when the AppWrapper is queued: Kueue makes DNS labels of it"
		return field.ErrorList{field.Invalid(path, wrapper.Name, detail)}
	}
	return nil
}
