package rights

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	clusterRoles = "clusterroles"
	roles        = "roles"
)

// Collector reads the requests of one manager from an audit log.
type Collector struct {
	// User is the user name of the manager.
	User string
	// Namespace is that of the manager.
	Namespace string
	// Expected reports whether a spec expected a forbidden request; offset is the start of its line in the log. Nil means none.
	Expected func(use Use, offset int64) bool

	owners  map[string][]metav1.OwnerReference // of written objects by UID
	names   map[string]bool                    // resource names in the rules of roles
	rules   map[string][]rbacv1.PolicyRule     // of ClusterRoles by name
	used    map[Use]bool
	granted map[Use]bool
	bound   map[Use]bool     // name of a ClusterRole and namespace of its binding
	refused map[Refusal]bool // true if admission rejected the request
}

// event has the required fields of an audit.k8s.io/v1 Event.
type event struct {
	Stage      string
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  struct{ APIGroup, Resource, Subresource, Namespace, Name string }

	ResponseStatus struct {
		Code    int
		Message string
	}
	ResponseObject object
	Annotations    map[string]string
}

// object has the required fields of a written object.
type object struct {
	Metadata struct {
		Name, UID       string
		OwnerReferences []metav1.OwnerReference
	}
	// Rules and Spec are decoded for some kinds only. RoleRef is that of bindings.
	Rules, Spec json.RawMessage
	RoleRef     struct{ Kind, Name string }
}

// rules returns the rules of a role; nil for other kinds.
func (e event) rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	isRole := e.ObjectRef.APIGroup == rbacv1.GroupName && (e.ObjectRef.Resource == roles || e.ObjectRef.Resource == clusterRoles)
	if !isRole || json.Unmarshal(e.ResponseObject.Rules, &rules) != nil {
		return nil
	}
	return rules
}

// Collect reads an audit log up to its last complete line. It reads the roles that any client writes, because the recorded resource
// names and the permissions of bindings depend on them.
func (c *Collector) Collect(log io.Reader) (Run, error) {
	c.owners = map[string][]metav1.OwnerReference{}
	c.names, c.rules = map[string]bool{}, map[string][]rbacv1.PolicyRule{}
	c.used, c.granted, c.bound, c.refused = map[Use]bool{}, map[Use]bool{}, map[Use]bool{}, map[Refusal]bool{}
	relevant := [][]byte{
		[]byte(`"username":"` + c.User + `"`), []byte(`"resource":"` + clusterRoles + `"`), []byte(`"resource":"` + roles + `"`), []byte(`"ownerReferences"`),
	}
	controllers := []byte(`"username":"system:serviceaccount:kube-system:`) // their requests are ignored
	var offset int64
	for reader := bufio.NewReaderSize(log, 1<<20); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return c.run(), nil
		}
		if err != nil {
			return Run{}, fmt.Errorf("reading the audit log: %w", err)
		}
		if !bytes.Contains(line, controllers) && slices.ContainsFunc(relevant, func(text []byte) bool { return bytes.Contains(line, text) }) {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return Run{}, fmt.Errorf("decoding an audit entry: %w", err)
			}
			c.add(e, offset)
		}
		offset += int64(len(line))
	}
}

// add records a completed request. A successful watch is recorded at its start; its event at the end is ignored.
func (c *Collector) add(e event, offset int64) {
	ok := e.ResponseStatus.Code < http.StatusBadRequest
	if e.Verb == "watch" && ok != (e.Stage == "ResponseStarted") || e.Verb != "watch" && e.Stage != "ResponseComplete" {
		return
	}
	if ok {
		c.storeRules(e)
	}
	defer c.storeOwners(e)
	if e.User.Username != c.User {
		return
	}
	use := c.requiredPermission(e)
	if forbidden, byAdmission := isRejected(e); forbidden {
		refusal := Refusal{Use: use, Message: e.ResponseStatus.Message}
		refusal.Expected = c.Expected != nil && c.Expected(use, offset)
		c.refused[refusal] = byAdmission
		return
	}
	c.used[use] = true
	if ok {
		c.addImplied(e, use)
	}
}

// storeOwners stores the owner references of a written object.
func (c *Collector) storeOwners(e event) {
	if response := e.ResponseObject.Metadata; response.UID != "" && e.ObjectRef.Subresource == "" {
		c.owners[response.UID] = response.OwnerReferences
	}
}

// storeRules stores the rules of a written role.
func (c *Collector) storeRules(e event) {
	rules := e.rules()
	if len(rules) == 0 {
		return
	}
	if e.ObjectRef.Resource == clusterRoles {
		c.rules[e.ResponseObject.Metadata.Name] = rules
	}
	if e.User.Username == c.User {
		return // the manager has no permissions from its own roles
	}
	for _, rule := range rules {
		for _, name := range rule.ResourceNames {
			c.names[name] = true
		}
	}
}

// requiredPermission returns the permission that a request requires.
func (c *Collector) requiredPermission(e event) Use {
	ref := e.ObjectRef
	if ref.Resource == "" {
		path, _, _ := strings.Cut(e.RequestURI, "?")
		return Use{Verb: e.Verb, Path: path}
	}
	resource := ref.Resource
	if ref.Subresource != "" {
		resource += "/" + ref.Subresource
	}
	return Use{Verb: e.Verb, Group: ref.APIGroup, Resource: resource, Name: ref.Name, Namespace: c.scope(ref.Namespace)}
}

func (c *Collector) scope(namespace string) string {
	switch namespace {
	case "":
		return ""
	case c.Namespace:
		return Own
	default:
		return Other
	}
}

// isRejected reports whether a request failed because of a missing permission, and whether admission rejected it. Admission checks
// permissions in addition to those of authorization.
func isRejected(e event) (forbidden, byAdmission bool) {
	if e.ResponseStatus.Code != http.StatusForbidden || IsUntimely(e.ResponseStatus.Message) {
		return false, false
	}
	for _, text := range []string{"attempting to grant RBAC permissions", "cannot set blockOwnerDeletion", "cannot set an ownerRef on a resource you can't delete"} {
		if strings.Contains(e.ResponseStatus.Message, text) {
			return true, true
		}
	}
	return e.Annotations["authorization.k8s.io/decision"] == "forbid", false
}

// IsUntimely reports whether a 403 is caused by the time of the request, not by missing permissions. Admission refreshes its REST
// mapping for owners every half minute (OwnerReferencesPermissionEnforcement of k8s.io/apiserver), and rejects earlier writes for a
// new CRD. In a terminating namespace no object can be created.
func IsUntimely(message string) bool {
	return strings.Contains(message, "cannot set blockOwnerDeletion in this case because cannot find RESTMapping") ||
		strings.HasSuffix(message, "because it is being terminated")
}

// run returns the collected permissions, without names of objects that no role contains. A refusal is omitted if authorization allowed the
// same use at another time, because an API server forbids requests until it has read the roles.
func (c *Collector) run() Run {
	var run Run
	for use := range c.used {
		if use.Path == "" { // every user may use discovery
			run.Used = append(run.Used, c.withoutUnknownName(use))
		}
	}
	for use := range c.granted {
		run.Granted = append(run.Granted, c.withoutUnknownName(use))
	}
	for bound := range c.bound {
		rules := map[Use]bool{}
		addRules(c.rules[bound.Name], bound.Namespace, rules)
		run.Bound = append(run.Bound, Bound{Name: bound.Name, Namespace: bound.Namespace, Rules: sorted(slices.Collect(maps.Keys(rules)))})
	}
	for refusal, byAdmission := range c.refused {
		if byAdmission || !c.allowed(refusal.Use) {
			run.Refused = append(run.Refused, refusal)
		}
	}
	run.Used, run.Granted, run.Bound, run.Refused = sorted(run.Used), sorted(run.Granted), sorted(run.Bound), sorted(run.Refused)
	return run
}

// allowed reports whether a use was allowed at another time. Informers send a list only if their watch has failed, so an allowed watch is
// sufficient.
func (c *Collector) allowed(use Use) bool {
	watch := use
	watch.Verb = "watch"
	return c.used[use] || use.Verb == "list" && c.used[watch]
}

func (c *Collector) withoutUnknownName(use Use) Use {
	if !c.names[use.Name] {
		use.Name = ""
	}
	return use
}
