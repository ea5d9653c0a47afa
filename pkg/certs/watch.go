package certs

import (
	"context"
	"encoding/base64"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/odh-platform/odh-platform-operator/pkg/follow"
)

// resources are those of the kinds that can learn a CA.
var resources = map[schema.GroupVersionKind]string{
	Validating: "validatingwebhookconfigurations", Mutating: "mutatingwebhookconfigurations", Conversion: "customresourcedefinitions",
}

// watchTargets follows each target by its name until ctx ends. It needs the right to list and watch them by name.
func (a *Authority) watchTargets(ctx context.Context, running *sync.WaitGroup) {
	if a.Dynamic == nil {
		return
	}
	for _, target := range a.Targets {
		resource := target.Kind.GroupVersion().WithResource(resources[target.Kind])
		follower := follow.New(follow.Options{
			Client: a.Dynamic.Resource(resource), Resource: resource.GroupResource(), Name: target.Name, Clock: a.Clock, Log: a.Log,
			Take: func(obj *unstructured.Unstructured) { a.look(target, obj) },
		})
		follower.SetServed(true)
		running.Go(func() { _ = follower.Start(ctx) }) // it never returns an error
	}
}

// look wakes the upkeep when a target does not hold the CA.
func (a *Authority) look(target Target, obj *unstructured.Unstructured) {
	current := a.current.Load()
	if obj == nil || current == nil {
		return // the first sync writes what is missing
	}
	obj.SetGroupVersionKind(target.Kind)
	if len(patchFor(obj, base64.StdEncoding.EncodeToString(current.data[keyCACert]), target.Service)) == 0 {
		return
	}
	observeInjected(target, false)
	a.Log.Info("The CA in a webhook configuration was changed and will be put right", "kind", target.Kind.Kind, "name", target.Name)
	select {
	case a.moved <- struct{}{}:
	default:
	}
}
