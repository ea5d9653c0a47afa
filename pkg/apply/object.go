package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Ownership is the kind of owner reference of an applied object.
type Ownership int

const (
	// Controlled objects have a controller reference with blockOwnerDeletion. They are deleted with their owner.
	Controlled Ownership = iota
	// Owned objects have an owner reference without blockOwnerDeletion, which requires permission to update the finalizers of the owner.
	Owned
	// Unowned objects have no owner reference, because they hold data or cannot have one, such as in another namespace.
	Unowned
)

// Object is the desired state of one object, with the options of its apply.
type Object struct {
	// Config is a typed apply configuration, or the result of client.ApplyConfigurationFromUnstructured. It is not modified. The Applier
	// adds labels, owner references and the uid. Secrets must use data: the API server never returns stringData, so such
	// a Secret would be written again after each restart. Defaults that matter, such as the type of a Service, must be set explicitly, so that
	// FieldOwner owns them and a change by another client is detected.
	Config runtime.ApplyConfiguration
	// Ownership is the kind of owner reference; the zero value is Controlled.
	Ownership Ownership
	// AdoptIf reports whether to adopt an existing object that this component did not write; nil adopts none. See checkForeign for the
	// objects that are never adopted.
	AdoptIf func(live *unstructured.Unstructured) bool
	// DropOwnerReferences reports whether to remove an owner reference of the existing object, such as one to a legacy resource of the
	// platform. A controller reference that is removed does not make the object foreign. Nil removes none.
	DropOwnerReferences func(metav1.OwnerReference) bool
	// NeverDelete protects an object whose data may have no copy, such as a generated password or key. It is never deleted to be
	// recreated, even if its immutable fields differ. Unowned objects of the core API group are always protected.
	NeverDelete bool
	// ResourceVersion is the version of the live object that Config is based on. An apply to another version fails with a conflict, which
	// protects later changes of other clients, such as the replicas set by an autoscaler. Empty applies to any version.
	ResourceVersion string
	// Existing is the object if the caller has just read it from the API server; nil otherwise.
	Existing client.Object
	// IgnoreIfForeign accepts an existing foreign object of that name without an error and leaves it unchanged. Such an object is read in
	// each reconcile.
	IgnoreIfForeign bool
}

// Desired lists the desired objects of an owner. Apply orders them by Stage.
type Desired []Object

// Add appends objects that the owner controls.
func (d *Desired) Add(configs ...runtime.ApplyConfiguration) {
	for _, config := range configs {
		*d = append(*d, Object{Config: config})
	}
}

// Stage orders the objects of one Apply. No object of a stage is written while one of an earlier stage fails: pods must not run before
// their prerequisites are met, or be reachable before they run.
type Stage int

const (
	// Prerequisites are ServiceAccounts, RBAC, policies, configuration, Secrets, PersistentVolumeClaims and all kinds not named below.
	Prerequisites Stage = iota
	// Workloads are pods and the kinds that create pods.
	Workloads
	// Exposure contains the kinds that route traffic to pods, show them to users, monitor or scale them, or limit their disruption.
	Exposure
)

// stageOf contains the kinds of the later stages, in any API group.
var stageOf = map[string]Stage{
	"Deployment": Workloads, "StatefulSet": Workloads, "DaemonSet": Workloads, "ReplicaSet": Workloads, "Job": Workloads, "CronJob": Workloads, "Pod": Workloads,
	"Service": Exposure, "Route": Exposure, "HTTPRoute": Exposure, "Ingress": Exposure, "ReferenceGrant": Exposure, "BackendTLSPolicy": Exposure,
	"ConsoleLink": Exposure, "ServiceMonitor": Exposure, "PodMonitor": Exposure, "PrometheusRule": Exposure, "PodDisruptionBudget": Exposure,
	"HorizontalPodAutoscaler": Exposure,
}

// InStages returns the objects of the given stages, in the order of d.
func (d Desired) InStages(stages ...Stage) Desired {
	return slices.DeleteFunc(slices.Clone(d), func(o Object) bool { return !slices.Contains(stages, stageOf[o.Key().Kind]) })
}

// Key identifies an object by kind, namespace and name.
type Key struct {
	schema.GroupVersionKind
	types.NamespacedName
}

// NewKey returns the key of an object.
func NewKey(kind schema.GroupVersionKind, namespace, name string) Key {
	return Key{kind, types.NamespacedName{Namespace: namespace, Name: name}}
}

// unversioned returns the key without the API version.
func (k Key) unversioned() Key {
	k.Version = ""
	return k
}

// validate returns an error for an incomplete key.
func (k Key) validate() error {
	if k.Kind == "" || k.Version == "" || k.Name == "" {
		return errors.New("the apply configuration has no valid apiVersion, kind or name")
	}
	return nil
}

// typedConfig is implemented by generated apply configurations.
type typedConfig interface {
	GetAPIVersion() *string
	GetKind() *string
	GetNamespace() *string
	GetName() *string
}

// Key returns the key of an object without encoding it. Apply and Prune reject a configuration whose key is incomplete.
func (o Object) Key() (k Key) {
	switch c := o.Config.(type) {
	case client.Object: // the result of client.ApplyConfigurationFromUnstructured
		k = Key{c.GetObjectKind().GroupVersionKind(), client.ObjectKeyFromObject(c)}
	case typedConfig:
		k.GroupVersionKind = schema.FromAPIVersionAndKind(ptr.Deref(c.GetAPIVersion(), ""), ptr.Deref(c.GetKind(), ""))
		k.Namespace, k.Name = ptr.Deref(c.GetNamespace(), ""), ptr.Deref(c.GetName(), "")
	}
	return k
}

// child is a desired object during one apply.
type child struct {
	Object
	key         Key
	body        []byte // Config as JSON, without the fields that the Applier adds
	desiredHash uint64 // hash of the body and the ownership
	// exists is true if the live object has the uid. The apply sends the uid, so it fails instead of recreating an object that another
	// client has deleted.
	exists bool
	uid    types.UID
}

// dropsReference reports whether an owner reference of the existing object must be removed.
func (c *child) dropsReference(ref metav1.OwnerReference) bool {
	return c.DropOwnerReferences != nil && c.DropOwnerReferences(ref)
}

// newChild returns a child, which has its key even if there is an error. An owner reference across namespaces is an error: the garbage
// collector would delete the child.
func newChild(o owner, object Object) (*child, error) {
	k := object.Key()
	c := &child{Object: object, key: k}
	if err := k.validate(); err != nil {
		return c, err
	}
	if c.Ownership != Unowned && o.GetNamespace() != "" && o.GetNamespace() != k.Namespace {
		return c, fmt.Errorf("%s %s cannot own an object outside its namespace", o.kind.Kind, client.ObjectKeyFromObject(o))
	}
	c.body, _ = json.Marshal(object.Config) // cannot fail: apply configurations contain only values of JSON
	c.desiredHash = maphash.Bytes(hashSeed, c.body) + uint64(object.Ownership)
	return c, nil
}

// Render returns the objects that Apply would create in an empty cluster, in the order of desired, with labels and owner references. The
// owner must have a TypeMeta unless it is of a built-in kind.
func Render(desired Desired, component string, owner client.Object) ([]*unstructured.Unstructured, error) {
	o, a := newOwner(owner, scheme.Scheme), &Applier{Options: Options{Component: component}}
	objects := make([]*unstructured.Unstructured, 0, len(desired))
	for _, object := range desired {
		c, err := newChild(o, object)
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", objectTitle(c.key.Kind, c.key.Namespace, c.key.Name), err)
		}
		objects = append(objects, a.render(o, c))
	}
	return objects, nil
}

var networkPolicyKind = schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}

// render returns the body of an apply request.
func (a *Applier) render(o owner, c *child) *unstructured.Unstructured {
	body := &unstructured.Unstructured{}
	_ = body.UnmarshalJSON(c.body) // cannot fail: it was encoded by newChild and has a kind
	if c.key.GroupKind() == networkPolicyKind {
		setEmptyRules(body.Object)
	}
	if c.key.GroupKind() == httpRouteKind && a.omitTimeouts.Load() {
		for _, rule := range nested.List(body.Object, "spec", "rules") {
			delete(nested.Map(rule), "timeouts")
		}
	}
	labels := body.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, names.Labels(a.Component))
	body.SetLabels(labels)
	body.SetUID(c.uid)
	body.SetOwnerReferences(o.ownerReferences(c.Ownership))
	return body
}

// setEmptyRules sets ingress or egress of a NetworkPolicy to an empty list if policyTypes contains the direction and the field is absent. Both
// forms deny all traffic, but FieldOwner must own the field to detect rules of other clients. Typed apply configurations omit empty lists.
func setEmptyRules(policy map[string]any) {
	directions, _, _ := unstructured.NestedStringSlice(policy, "spec", "policyTypes")
	for _, direction := range directions {
		rules := strings.ToLower(direction)
		if nested.At(policy, "spec", rules) == nil {
			_ = unstructured.SetNestedSlice(policy, []any{}, "spec", rules)
		}
	}
}
