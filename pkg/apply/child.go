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

// child is one desired object on its way.
type child struct {
	Object
	key    key
	body   []byte // the configuration as JSON, without what the Applier adds
	intent uint64 // hash of the body and the ownership
}

// disowns says whether an owner reference goes when the object is taken over.
func (c child) disowns(ref metav1.OwnerReference) bool {
	return c.DropOwnerReferences != nil && c.DropOwnerReferences(ref)
}

func newChild(object Object) (child, error) {
	k, err := identify(object.Config)
	if err != nil {
		return child{key: k}, err
	}
	body, err := json.Marshal(object.Config)
	if err != nil {
		return child{key: k}, fmt.Errorf("encoding the apply configuration: %w", err)
	}
	intent := maphash.Bytes(seed, body) + uint64(object.Ownership)
	return child{Object: object, key: k, body: body, intent: intent}, nil
}

// typedConfig is what generated apply configurations offer.
type typedConfig interface {
	GetAPIVersion() *string
	GetKind() *string
	GetNamespace() *string
	GetName() *string
}

// looseConfig is what the wrapper of controller-runtime around unstructured objects offers.
type looseConfig interface {
	GroupVersionKind() schema.GroupVersionKind
	GetNamespace() string
	GetName() string
}

// Key returns the kind, the namespace and the name of an object.
func (o Object) Key() (schema.GroupVersionKind, types.NamespacedName, error) {
	k, err := identify(o.Config)
	return k.GroupVersionKind, k.NamespacedName, err
}

// identify reads the kind and the name of a configuration without encoding it.
func identify(config runtime.ApplyConfiguration) (key, error) {
	var k key
	switch c := config.(type) {
	case looseConfig:
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

// place is where an object lives, whatever the version in which it is written.
type place struct {
	schema.GroupKind
	types.NamespacedName
}

// places returns where all desired objects live.
func places(desired Desired) (map[place]bool, error) {
	taken := make(map[place]bool, len(desired))
	for _, object := range desired {
		k, err := identify(object.Config)
		if err != nil {
			return nil, err
		}
		taken[place{k.GroupKind(), k.NamespacedName}] = true
	}
	return taken, nil
}
