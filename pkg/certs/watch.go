package certs

import (
	"context"
	"encoding/base64"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

// resources are those of the kinds that can learn a CA.
var targetResources = map[schema.GroupVersionKind]string{
	Validating: "validatingwebhookconfigurations", Mutating: "mutatingwebhookconfigurations", Conversion: "customresourcedefinitions",
}

var secretResource = corev1.SchemeGroupVersion.WithResource("secrets")

// watch follows the Secret and each target by its name until ctx ends. It needs the right to list and watch them by name.
func (a *Authority) startWatches(ctx context.Context, running *sync.WaitGroup) {
	if a.Dynamic == nil {
		return
	}
	keepUp := func(client dynamic.ResourceInterface, resource schema.GroupVersionResource, name string, take func(*unstructured.Unstructured)) {
		follower := singleton.New(singleton.Options{Client: client, Resource: resource.GroupResource(), Name: name, Clock: a.Clock, Log: a.Log, OnUpdate: take})
		follower.SetServed(true)
		running.Go(func() { _ = follower.Start(ctx) }) // it never returns an error
	}
	keepUp(a.Dynamic.Resource(secretResource).Namespace(a.Secret.Namespace), secretResource, a.Secret.Name, a.onSecretUpdate)
	for _, target := range a.Targets {
		resource := target.Kind.GroupVersion().WithResource(targetResources[target.Kind])
		keepUp(a.Dynamic.Resource(resource), resource, target.Name, func(obj *unstructured.Unstructured) { a.onTargetUpdate(target, obj) })
	}
}

// lookAtSecret wakes the upkeep when the Secret does not hold what is served: it is gone or damaged, or another replica has renewed it.
func (a *Authority) onSecretUpdate(obj *unstructured.Unstructured) {
	current := a.current.Load()
	if current == nil {
		return // the first sync writes what is missing
	}
	live := &corev1.Secret{}
	if obj != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, live) == nil && current.matches(live.Data) {
		return
	}
	a.Log.Info("The Secret of the webhook certificate was changed and will be read", "secret", a.Secret.String())
	a.triggerSync()
}

// look wakes the upkeep when a target does not hold the CA.
func (a *Authority) onTargetUpdate(target Target, obj *unstructured.Unstructured) {
	current := a.current.Load()
	if obj == nil || current == nil {
		return // the first sync writes what is missing
	}
	obj.SetGroupVersionKind(target.Kind)
	if len(buildCABundlePatch(obj, base64.StdEncoding.EncodeToString(current.data[secretKeyCACert]), target.Service)) == 0 {
		return
	}
	recordInjection(target, false)
	a.Log.Info("The CA in a webhook configuration was changed and will be put right", "kind", target.Kind.Kind, "name", target.Name)
	a.triggerSync()
}

// wake ends the rest before the next sync.
func (a *Authority) triggerSync() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}
