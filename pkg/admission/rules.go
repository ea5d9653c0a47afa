package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// manifestPrefix begins the names of what our manifests install for the manager.
const manifestPrefix = "odh-platform-operator-"

// Mode says what happens to what an author may not use.
type Mode string

// The modes.
const (
	Enforce Mode = "Enforce"
	Warn    Mode = "Warn"
	Off     Mode = "Off"
)

// Level is a level of the Pod Security Standards.
type Level string

// The levels.
const (
	Privileged Level = "privileged"
	Baseline   Level = "baseline"
	Restricted Level = "restricted"
)

// Rules say what authors may use. No author may use what belongs to the manager itself, whatever the mode.
type Rules struct {
	// Mode for everything that does not belong to the manager.
	Mode Mode
	// Level that pods must keep to.
	Level Level
	// Namespace and Account are those of the manager.
	Namespace, Account string
}

// reservedLabels begin the keys of labels by which the manager, and what it makes, select pods. A pod of another object that had one
// would get their traffic.
var reservedLabels = []string{"platform.opendatahub.io/", "ray.io/", "modelmesh-service", "workload.codeflare.dev/"}

// ReservedLabel reports whether the platform selects pods by a label.
func ReservedLabel(key string) bool {
	return slices.ContainsFunc(reservedLabels, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// never explains why no author may use something; empty for what some may.
func (r Rules) never(namespace string, use Reference) string {
	if use.Kind == Label && ReservedLabel(use.Name) {
		return "the platform selects pods by it: choose another key"
	}
	if namespace != "" && namespace != r.Namespace {
		return ""
	}
	switch {
	case use.Kind == Account && use.Name == r.Account:
		return "it is the account of the manager, which has permissions in all namespaces: use one that has only the permissions it needs"
	case use.Kind == Secret && r.ownsSecret(use.Name):
		return "it belongs to the manager: keep what the pods need in a Secret of their own"
	}
	return ""
}

// ownsSecret reports whether a Secret in the namespace of the manager is its own: a certificate, or a token of its account.
func (r Rules) ownsSecret(name string) bool {
	return strings.HasPrefix(name, manifestPrefix) ||
		r.Account != "" && (strings.HasPrefix(name, r.Account+"-token-") || strings.HasPrefix(name, r.Account+"-dockercfg-"))
}

// Forbidden returns an error for uses that no author can have: what belongs to the manager and, while rules are enforced, privileges
// beyond the level. Controllers ask before they make pods.
func (r Rules) Forbidden(u References) error {
	var errs []error
	for _, use := range u.new(References{}) {
		if text := r.never(u.Namespace, use); text != "" {
			errs = append(errs, fmt.Errorf("%s: %s is not allowed: %s", use.path, use, text))
		} else if use.Kind == Privilege && r.Mode == Enforce {
			errs = append(errs, errors.New(use.path+": "+r.tooMuch(use)))
		}
	}
	return errors.Join(errs...)
}

func (r Rules) tooMuch(use Reference) string {
	return fmt.Sprintf("the Pod Security level %s does not allow %s: remove it, or ask an administrator for another level (--pod-security-level)", r.Level, use.Name)
}

// Access answers whether a user has a right.
type Access func(ctx context.Context, user authenticationv1.UserInfo, right authorizationv1.ResourceAttributes) (bool, error)

// MaxErrors is how many mistakes of one request are reported. Each may have cost requests to the API server, and an author who makes thousands wants
// the manager to ask them.
const MaxErrors = 20

// Result is what Judge found.
type Result struct {
	// Errors are the reasons to refuse the request.
	Errors field.ErrorList
	// Warnings are what would be refused if rules were enforced.
	Warnings []string
}

// Review holds what is new in a request against the rights of its author. What the object used before passes. The error says that a
// right could not be asked for.
func (r Rules) Review(ctx context.Context, may Access, user authenticationv1.UserInfo, now, before References) (Result, error) {
	var j Result
	answers := map[authorizationv1.ResourceAttributes]bool{}
	ask := func(right authorizationv1.ResourceAttributes) (bool, error) {
		if allowed, known := answers[right]; known {
			return allowed, nil
		}
		allowed, err := may(ctx, user, right)
		if err != nil {
			return false, fmt.Errorf("asking whether %s may %s: %w", user.Username, described(right), err)
		}
		answers[right] = allowed
		return allowed, nil
	}
	for _, use := range now.new(before) {
		at := field.NewPath(use.path)
		if len(j.Errors) == MaxErrors {
			j.Errors = append(j.Errors, field.Forbidden(at, "the rest was not checked, because there are too many errors before it: correct them first"))
			break
		}
		if text := r.never(now.Namespace, use); text != "" {
			j.Errors = append(j.Errors, field.Forbidden(at, fmt.Sprintf("%s is not allowed: %s", use, text)))
			continue
		}
		if r.Mode == Off || len(j.Warnings) == MaxErrors {
			continue
		}
		text, err := r.lacking(user, use, rightsFor(now.Namespace, use), ask)
		switch {
		case err != nil:
			return j, err
		case text == "":
		case r.Mode == Enforce:
			j.Errors = append(j.Errors, field.Forbidden(at, text))
		default:
			j.Warnings = append(j.Warnings, use.path+": "+text)
		}
	}
	return j, nil
}

// lacking says what the author lacks for a use; empty for nothing.
func (r Rules) lacking(user authenticationv1.UserInfo, use Reference, rights []authorizationv1.ResourceAttributes,
	ask func(authorizationv1.ResourceAttributes) (bool, error)) (string, error) {
	if use.Kind == Privilege {
		return r.tooMuch(use), nil
	}
	var wanted []string
	for _, right := range rights {
		allowed, err := ask(right)
		if allowed || err != nil {
			return "", err
		}
		wanted = append(wanted, described(right))
	}
	return fmt.Sprintf("user %q cannot let pods use %s, because that requires permission to %s: request that permission, or remove it from the spec",
		user.Username, use, strings.Join(wanted, ", or to ")), nil
}

// rightsFor are the rights of which one is enough for a use. Who may create pods may make them use whatever the namespace has.
func rightsFor(namespace string, use Reference) []authorizationv1.ResourceAttributes {
	right := func(verb, resource, name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Version: "v1", Resource: resource, Name: name}
	}
	pods := right("create", "pods", "")
	switch use.Kind {
	case Secret, Receiver:
		return []authorizationv1.ResourceAttributes{pods, right("get", "secrets", use.Name)}
	case ConfigMap:
		return []authorizationv1.ResourceAttributes{pods, right("get", "configmaps", use.Name)}
	case Account:
		token := right("create", "serviceaccounts", use.Name)
		token.Subresource = "token"
		return []authorizationv1.ResourceAttributes{pods, token}
	case AccountNote:
		return []authorizationv1.ResourceAttributes{right("create", "serviceaccounts", "")}
	case Claim:
		return []authorizationv1.ResourceAttributes{right("create", "persistentvolumeclaims", "")}
	case Host:
		host := right("create", "routes", "")
		host.Group, host.Subresource = "route.openshift.io", "custom-host"
		return []authorizationv1.ResourceAttributes{host}
	default:
		return []authorizationv1.ResourceAttributes{pods}
	}
}

// described names a right in a message.
func described(right authorizationv1.ResourceAttributes) string {
	resource := right.Resource
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	if right.Group != "" {
		resource += "." + right.Group
	}
	if right.Name != "" {
		resource += " " + right.Name
	}
	if right.Namespace == "" {
		return right.Verb + " " + resource + " in all namespaces"
	}
	return right.Verb + " " + resource + " in namespace " + right.Namespace
}
