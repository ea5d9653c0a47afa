package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// child is a desired object during one apply.
type child struct {
	Object
	key         key
	body        []byte // Config as JSON, without the fields that the Applier adds
	desiredHash uint64 // hash of the body and the ownership
	// exists reports whether the apply is an update of the object with the uid, which fails if another client has deleted the object.
	exists bool
	uid    types.UID
	// otherReferences are references to other owners that the object keeps. An apply without them would remove them.
	otherReferences []metav1.OwnerReference
}

// dropsReference reports whether an owner reference of the existing object is removed.
func (c child) dropsReference(ref metav1.OwnerReference) bool {
	return c.DropOwnerReferences != nil && c.DropOwnerReferences(ref)
}

// newChild returns a child, which has its key even if there is an error.
func newChild(object Object) (*child, error) {
	k, err := keyOf(object.Config)
	c := &child{Object: object, key: k}
	if err != nil {
		return c, err
	}
	if c.body, err = json.Marshal(object.Config); err != nil {
		return c, fmt.Errorf("encoding the apply configuration: %w", err)
	}
	c.desiredHash = maphash.Bytes(hashSeed, c.body) + uint64(object.Ownership)
	return c, nil
}

// typedConfig is implemented by generated apply configurations.
type typedConfig interface {
	GetAPIVersion() *string
	GetKind() *string
	GetNamespace() *string
	GetName() *string
}

// unstructuredConfig is implemented by the result of client.ApplyConfigurationFromUnstructured.
type unstructuredConfig interface {
	GroupVersionKind() schema.GroupVersionKind
	GetNamespace() string
	GetName() string
}

// Key returns the kind, namespace and name of an object.
func (o Object) Key() (schema.GroupVersionKind, types.NamespacedName, error) {
	k, err := keyOf(o.Config)
	return k.GroupVersionKind, k.NamespacedName, err
}

// keyOf returns the key of an apply configuration without encoding it.
func keyOf(config runtime.ApplyConfiguration) (key, error) {
	var k key
	switch c := config.(type) {
	case unstructuredConfig:
		k = key{c.GroupVersionKind(), types.NamespacedName{Namespace: c.GetNamespace(), Name: c.GetName()}}
	case typedConfig:
		k.GroupVersionKind = schema.FromAPIVersionAndKind(ptr.Deref(c.GetAPIVersion(), ""), ptr.Deref(c.GetKind(), ""))
		k.Namespace, k.Name = ptr.Deref(c.GetNamespace(), ""), ptr.Deref(c.GetName(), "")
	default:
		return k, fmt.Errorf("%T is no apply configuration of a known form", config)
	}
	if k.Kind == "" || k.Version == "" || k.Name == "" {
		return k, errors.New("the apply configuration has no valid apiVersion, kind or name")
	}
	return k, nil
}

// unversionedKey identifies an object in all versions of its API.
type unversionedKey struct {
	schema.GroupKind
	types.NamespacedName
}
