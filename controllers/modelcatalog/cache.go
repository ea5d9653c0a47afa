package modelcatalog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// formerSources, cookieSecret and the claim with the name of the database are what older releases left.
const (
	formerSources = "model-catalog-default-sources"
	cookieSecret  = "model-catalog-oauth-cookie-secret"
)

// place is one object by kind and name, in whatever namespace.
type place struct {
	kind schema.GroupVersionKind
	name string
}

// byName are the objects that are watched by their name: Secrets, of which others' are none of our business, and what older
// releases left, which lacks our labels.
var byName = []place{
	{secretKind, databaseName}, {secretKind, certificateSecret}, {secretKind, cookieSecret},
	{claimKind, databaseName}, {configMapKind, formerSources},
}

// sideCaches hold what the cache of the manager does not: few objects each.
type sideCaches struct {
	named map[place]cache.Cache
	// maps are the ConfigMaps with our labels: the cache of the manager may hold those of everybody.
	maps      cache.Cache
	labelled  cache.Cache
	endpoints cache.Cache
}

func newSideCaches(mgr ctrl.Manager, namespace string) (*sideCaches, error) {
	s := &sideCaches{named: map[place]cache.Cache{}}
	limit := func(by cache.ByObject) cache.ByObject {
		if namespace != "" {
			by.Namespaces = map[string]cache.Config{namespace: {}}
		}
		return by
	}
	for _, p := range byName {
		by := limit(cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", p.name)})
		c, err := component.Narrow(mgr, head(p.kind), by, apply.Transform(FieldOwner))
		if err != nil {
			return nil, err
		}
		s.named[p] = c
	}
	by := limit(cache.ByObject{Label: k8slabels.SelectorFromSet(names.Labels(ComponentName))})
	var err error
	if s.maps, err = component.Narrow(mgr, head(configMapKind), by, apply.Transform(FieldOwner)); err != nil {
		return nil, err
	}
	by = limit(cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{SourceLabel: sourceLabelValue})})
	if s.labelled, err = component.Narrow(mgr, &corev1.ConfigMap{}, by, condense); err != nil {
		return nil, err
	}
	by = limit(cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{discoveryv1.LabelServiceName: baseName})})
	s.endpoints, err = component.Narrow(mgr, &discoveryv1.EndpointSlice{}, by, apply.Transform())
	return s, err
}

// AsMetadata reports whether a kind is held as metadata in caches of our own, whatever the cache of the manager does.
func AsMetadata(kind schema.GroupVersionKind) bool {
	return kind == secretKind || kind == configMapKind || kind == claimKind
}

// head is an object of which only the metadata is wanted.
func head(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	h := &metav1.PartialObjectMetadata{}
	h.SetGroupVersionKind(kind)
	return h
}

// routedClient finds in the side caches what they hold.
type routedClient struct {
	client.Client
	side *sideCaches
}

func (s *sideCaches) routed(main client.Client) client.Client { return &routedClient{main, s} }

// Get implements client.Reader.
func (c *routedClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if _, ok := object.(*metav1.PartialObjectMetadata); ok {
		kind := object.GetObjectKind().GroupVersionKind()
		if named, ok := c.side.named[place{kind, key.Name}]; ok {
			return named.Get(ctx, key, object, opts...)
		}
		if kind == configMapKind {
			return c.side.maps.Get(ctx, key, object, opts...)
		}
	}
	return c.Client.Get(ctx, key, object, opts...)
}

// List implements client.Reader.
func (c *routedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if heads, ok := list.(*metav1.PartialObjectMetadataList); ok && heads.GroupVersionKind().Kind == "ConfigMapList" {
		return c.side.maps.List(ctx, list, opts...)
	}
	return c.Client.List(ctx, list, opts...)
}

// sources wake a controller with whatever happens to what the caches hold.
func (s *sideCaches) sources(h handler.EventHandler) []source.Source {
	var all []source.Source
	for _, p := range byName {
		all = append(all, source.Kind(s.named[p], client.Object(head(p.kind)), h))
	}
	return append(all,
		source.Kind(s.maps, client.Object(head(configMapKind)), h),
		source.Kind(s.labelled, client.Object(&corev1.ConfigMap{}), h),
		source.Kind(s.endpoints, client.Object(&discoveryv1.EndpointSlice{}), h))
}

// candidates are the labelled ConfigMaps of a namespace.
func (s *sideCaches) candidates(ctx context.Context, namespace string) ([]candidate, error) {
	list := &corev1.ConfigMapList{}
	if err := s.labelled.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ConfigMaps with sources: %w", err)
	}
	var all []candidate
	for i := range list.Items {
		all = append(all, candidateOf(&list.Items[i]))
	}
	return all, nil
}

// slices are the EndpointSlices of the Service.
func (s *sideCaches) slices(ctx context.Context, namespace string) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	if err := s.endpoints.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing EndpointSlices: %w", err)
	}
	return list.Items, nil
}
