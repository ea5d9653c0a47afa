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

// targetResources maps the kinds of targets to their resources.
var targetResources = map[schema.GroupVersionKind]string{
	Validating: "validatingwebhookconfigurations", Mutating: "mutatingwebhookconfigurations", Conversion: "customresourcedefinitions",
}

var secretResource = corev1.SchemeGroupVersion.WithResource("secrets")

// startWatches starts watches of the Secret and each target by name, which end with ctx. They need permission to list and watch.
func (a *Authority) startWatches(ctx context.Context, running *sync.WaitGroup) {
	if a.Dynamic == nil {
		return
	}
	start := func(client dynamic.ResourceInterface, resource schema.GroupVersionResource, name string, onUpdate func(*unstructured.Unstructured)) {
		watcher := singleton.New(singleton.Options{Client: client, Resource: resource.GroupResource(), Name: name, Clock: a.Clock, Log: a.Log, OnUpdate: onUpdate})
		watcher.SetServed(true)
		running.Go(func() { _ = watcher.Start(ctx) }) // never returns an error
	}
	start(a.Dynamic.Resource(secretResource).Namespace(a.Secret.Namespace), secretResource, a.Secret.Name, a.onSecretUpdate)
	for _, target := range a.Targets {
		resource := target.Kind.GroupVersion().WithResource(targetResources[target.Kind])
		start(a.Dynamic.Resource(resource), resource, target.Name, func(obj *unstructured.Unstructured) { a.onTargetUpdate(target, obj) })
	}
}

// onSecretUpdate triggers a sync if the Secret differs from the served pair, such as after it was deleted or another replica renewed it.
func (a *Authority) onSecretUpdate(obj *unstructured.Unstructured) {
	current := a.current.Load()
	if current == nil {
		return // the first sync writes it
	}
	live := &corev1.Secret{}
	if obj != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, live) == nil && current.matches(live.Data) {
		return
	}
	a.Log.Info("The Secret of the webhook certificate was changed and will be read", "secret", a.Secret.String())
	a.triggerSync()
}

// onTargetUpdate triggers a sync if a target does not contain the CA.
func (a *Authority) onTargetUpdate(target Target, obj *unstructured.Unstructured) {
	current := a.current.Load()
	if obj == nil || current == nil {
		return // the target was deleted, or the first sync writes it
	}
	obj.SetGroupVersionKind(target.Kind)
	if len(buildCABundlePatch(obj, base64.StdEncoding.EncodeToString(current.data[dataKeyCACert]), target.Service)) == 0 {
		return
	}
	recordInjection(target, false)
	a.Log.Info("The CA in a webhook configuration was changed and will be restored", "kind", target.Kind.Kind, "name", target.Name)
	a.triggerSync()
}

// triggerSync ends waitForChange.
func (a *Authority) triggerSync() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}
