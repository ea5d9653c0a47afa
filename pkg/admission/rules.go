package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// operatorPrefix is the prefix of the names of the objects that the manifests install for the manager.
const operatorPrefix = "odh-platform-operator-"

// Mode is the action for references without permission.
type Mode string

// Modes of Rules.
const (
	Enforce Mode = "Enforce"
	Warn    Mode = "Warn"
	Off     Mode = "Off"
)

// Level is a level of the Pod Security Standards.
type Level string

// Levels of the Pod Security Standards.
const (
	Privileged Level = "privileged"
	Baseline   Level = "baseline"
	Restricted Level = "restricted"
)

// Rules configure which references are allowed. The ServiceAccount and Secrets of the manager, and reserved labels, are always forbidden.
type Rules struct {
	// Mode applies to all other references.
	Mode Mode
	// Level is the required level of pods.
	Level Level
	// Namespace and Account are the namespace and the ServiceAccount of the manager.
	Namespace, Account string
}

// reservedLabels are prefixes of label keys by which Services, NetworkPolicies and controllers of the platform select pods. Foreign pods
// with such a label could receive the traffic of a Service.
var reservedLabels = []string{"platform.opendatahub.io/", "ray.io/", "modelmesh-service", "workload.codeflare.dev/"}

// IsReservedLabel reports whether the platform selects pods by the label.
func IsReservedLabel(key string) bool {
	return slices.ContainsFunc(reservedLabels, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// alwaysForbidden returns the reason why no user can use a reference, empty if some users can.
func (r Rules) alwaysForbidden(namespace string, reference Reference) string {
	if reference.Kind == Label && IsReservedLabel(reference.Name) {
		return "the platform selects pods by it: choose another key"
	}
	if namespace != "" && namespace != r.Namespace {
		return ""
	}
	switch {
	case reference.Kind == Account && reference.Name == r.Account:
		return "it is the ServiceAccount of the manager, which has permissions in all namespaces: use a ServiceAccount that has only the permissions that the pods need"
	case reference.Kind == Secret && r.ownsSecret(reference.Name):
		return "it belongs to the manager: keep what the pods need in a Secret of their own"
	}
	return ""
}

// ownsSecret reports whether a Secret in the namespace of the manager belongs to it: a certificate, or a token of its account.
func (r Rules) ownsSecret(name string) bool {
	return strings.HasPrefix(name, operatorPrefix) ||
		r.Account != "" && (strings.HasPrefix(name, r.Account+"-token-") || strings.HasPrefix(name, r.Account+"-dockercfg-"))
}

// Forbidden returns an error for references that no user can use: objects of the manager, reserved labels and, in mode Enforce, privileges
// above the level. Controllers call it before they create pods.
func (r Rules) Forbidden(references References) error {
	var errs []error
	for _, reference := range references.addedSince(References{}) {
		if text := r.alwaysForbidden(references.Namespace, reference); text != "" {
			errs = append(errs, fmt.Errorf("%s: %s is not allowed: %s", reference.path, reference, text))
		} else if reference.Kind == Privilege && r.Mode == Enforce {
			errs = append(errs, errors.New(reference.path+": "+r.privilegeMessage(reference)))
		}
	}
	return errors.Join(errs...)
}

func (r Rules) privilegeMessage(reference Reference) string {
	return fmt.Sprintf("the Pod Security level %s does not allow %s: remove it, or ask an administrator for another level (--pod-security-level)", r.Level, reference.Name)
}

// Access reports whether a user has a permission.
type Access func(ctx context.Context, user authenticationv1.UserInfo, permission authorizationv1.ResourceAttributes) (bool, error)

// MaxErrors limits the errors that are reported for one request, because each may cost access reviews.
const MaxErrors = 20

// Result is the result of Rules.Review.
type Result struct {
	// Errors reject the request.
	Errors field.ErrorList
	// Warnings are the messages that are errors in mode Enforce.
	Warnings []string
}

// Review checks the added references of a request against the permissions of the user. References of the old object are allowed. It returns
// an error if an access review failed.
func (r Rules) Review(ctx context.Context, access Access, user authenticationv1.UserInfo, references, oldReferences References) (Result, error) {
	var result Result
	access = LimitReviews(access)
	hasPermission := func(permission authorizationv1.ResourceAttributes) (bool, error) {
		allowed, err := access(ctx, user, permission)
		if err != nil {
			return false, fmt.Errorf("checking whether %s may %s: %w", user.Username, describePermission(permission), err)
		}
		return allowed, nil
	}
	for _, reference := range references.addedSince(oldReferences) {
		path := field.NewPath(reference.path)
		if len(result.Errors) == MaxErrors {
			result.Errors = append(result.Errors, field.Forbidden(path, "the rest was not checked, because the request has too many errors: correct those first"))
			break
		}
		if text := r.alwaysForbidden(references.Namespace, reference); text != "" {
			result.Errors = append(result.Errors, field.Forbidden(path, fmt.Sprintf("%s is not allowed: %s", reference, text)))
			continue
		}
		if r.Mode == Off || len(result.Warnings) == MaxErrors {
			continue
		}
		text, err := r.permissionError(user, reference, sufficientPermissions(references.Namespace, reference), hasPermission)
		switch {
		case err != nil:
			return result, err
		case text == "":
		case r.Mode == Enforce:
			result.Errors = append(result.Errors, field.Forbidden(path, text))
		default:
			result.Warnings = append(result.Warnings, reference.path+": "+text)
		}
	}
	return result, nil
}

// permissionError returns a message if the user lacks permission for a reference, otherwise "". No permission allows a Privilege.
func (r Rules) permissionError(user authenticationv1.UserInfo, reference Reference, permissions []authorizationv1.ResourceAttributes,
	hasPermission func(authorizationv1.ResourceAttributes) (bool, error)) (string, error) {
	if reference.Kind == Privilege {
		return r.privilegeMessage(reference), nil
	}
	var descriptions []string
	for _, permission := range permissions {
		allowed, err := hasPermission(permission)
		if allowed || err != nil {
			return "", err
		}
		descriptions = append(descriptions, describePermission(permission))
	}
	return fmt.Sprintf("user %q cannot let pods use %s, because that requires permission to %s: request that permission, or remove the reference from the spec",
		user.Username, reference, strings.Join(descriptions, ", or to ")), nil
}

// sufficientPermissions returns the permissions of which one suffices for a reference. Permission to create pods suffices for everything
// that a pod can use.
func sufficientPermissions(namespace string, reference Reference) []authorizationv1.ResourceAttributes {
	permission := func(verb, resource, name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Version: "v1", Resource: resource, Name: name}
	}
	pods := permission("create", "pods", "")
	switch reference.Kind {
	case Secret, EgressURL:
		return []authorizationv1.ResourceAttributes{pods, permission("get", "secrets", reference.Name)}
	case ConfigMap:
		return []authorizationv1.ResourceAttributes{pods, permission("get", "configmaps", reference.Name)}
	case Account:
		token := permission("create", "serviceaccounts", reference.Name)
		token.Subresource = "token"
		return []authorizationv1.ResourceAttributes{pods, token}
	case ServiceAccountAnnotation:
		return []authorizationv1.ResourceAttributes{permission("create", "serviceaccounts", "")}
	case ExistingData:
		return []authorizationv1.ResourceAttributes{permission("create", "persistentvolumeclaims", "")}
	case Host:
		host := permission("create", "routes", "")
		host.Group, host.Subresource = "route.openshift.io", "custom-host"
		return []authorizationv1.ResourceAttributes{host}
	default:
		return []authorizationv1.ResourceAttributes{pods}
	}
}

// ResourceName returns the resource of a permission for messages.
func ResourceName(permission authorizationv1.ResourceAttributes) string {
	resource := permission.Resource
	if permission.Subresource != "" {
		resource += "/" + permission.Subresource
	}
	return schema.GroupResource{Group: permission.Group, Resource: resource}.String()
}

// describePermission returns a permission as text for messages.
func describePermission(permission authorizationv1.ResourceAttributes) string {
	resource := ResourceName(permission)
	if permission.Name != "" {
		resource += " " + permission.Name
	}
	if permission.Namespace == "" {
		return permission.Verb + " " + resource + " in all namespaces"
	}
	return permission.Verb + " " + resource + " in namespace " + permission.Namespace
}
