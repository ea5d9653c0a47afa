package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// countManaged returns the number of objects in the cluster that the operator has created, by kind.
func countManaged(ctx context.Context, config *rest.Config) (map[string]int, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // lists include deprecated APIs
	discoveryClient, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	reader, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	lists, err := discoveryClient.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("requesting the served APIs: %w", err)
	}
	objects := map[string][]metav1.PartialObjectMetadata{}
	options := metav1.ListOptions{LabelSelector: names.OperatorLabel + "=" + names.OperatorName}
	for resource, kind := range listable(lists) {
		found, err := reader.Resource(resource).List(ctx, options)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		objects[kind] = append(objects[kind], found.Items...)
	}
	return count(objects), nil
}

// count counts the objects that the operator has applied. An object that several API groups list counts once.
func count(byKind map[string][]metav1.PartialObjectMetadata) map[string]int {
	counts, seen := map[string]int{}, map[types.UID]bool{}
	for kind, objects := range byKind {
		for _, object := range objects {
			if seen[object.UID] || !applied(object.ManagedFields) {
				continue
			}
			seen[object.UID] = true
			counts[kind]++
		}
	}
	return counts
}

// applied reports whether an object was written by server-side apply. Controllers of Kubernetes, which do not use it, copy the labels of
// such objects to others, such as EndpointSlices.
func applied(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// listable returns the resources that can be listed, with their kinds.
func listable(lists []*metav1.APIResourceList) map[schema.GroupVersionResource]string {
	resources := map[schema.GroupVersionResource]string{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // not a valid version
		}
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") {
				resources[version.WithResource(resource.Name)] = resource.Kind
			}
		}
	}
	return resources
}

// describeCounts returns the total and the number of objects of each kind, in one line.
func describeCounts(counts map[string]int) string {
	total := 0
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		total += counts[kind]
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return fmt.Sprintf("%d objects: %s", total, strings.Join(parts, ", "))
}
