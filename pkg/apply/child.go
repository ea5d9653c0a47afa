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
}

// dropsReference reports whether an owner reference of the existing object is removed.
func (c child) dropsReference(ref metav1.OwnerReference) bool {
	return c.DropOwnerReferences != nil && c.DropOwnerReferences(ref)
}

func newChild(object Object) (child, error) {
	k, err := keyOf(object.Config)
	if err != nil {
		return child{key: k}, err
	}
	body, err := json.Marshal(object.Config)
	if err != nil {
		return child{key: k}, fmt.Errorf("encoding the apply configuration: %w", err)
	}
	desiredHash := maphash.Bytes(hashSeed, body) + uint64(object.Ownership)
	return child{Object: object, key: k, body: body, desiredHash: desiredHash}, nil
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
		group, err := schema.ParseGroupVersion(ptr.Deref(c.GetAPIVersion(), ""))
		if err != nil {
			return k, fmt.Errorf("reading the apiVersion: %w", err)
		}
		k = key{group.WithKind(ptr.Deref(c.GetKind(), "")),
			types.NamespacedName{Namespace: ptr.Deref(c.GetNamespace(), ""), Name: ptr.Deref(c.GetName(), "")}}
	default:
		return k, fmt.Errorf("%T is no apply configuration of a known form", config)
	}
	if k.Kind == "" || k.Version == "" || k.Name == "" {
		return k, errors.New("the apply configuration has no apiVersion, kind or name")
	}
	return k, nil
}

// unversionedKey identifies an object in all versions of its API.
type unversionedKey struct {
	schema.GroupKind
	types.NamespacedName
}

// unversionedKeys returns the keys of all desired objects.
func keysOf(desired Desired) (map[unversionedKey]bool, error) {
	keys := make(map[unversionedKey]bool, len(desired))
	for _, object := range desired {
		k, err := keyOf(object.Config)
		if err != nil {
			return nil, err
		}
		keys[unversionedKey{k.GroupKind(), k.NamespacedName}] = true
	}
	return keys, nil
}
