package modelcatalog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/component"
)

// sideCaches hold what the cache of the manager does not, few objects each.
type sideCaches struct {
	// secrets hold the metadata of the three Secrets of the catalog, by their names: it may not see any other.
	secrets map[string]cache.Cache
	// labelled holds the ConfigMaps of users with sources.
	labelled cache.Cache
}

func newSideCaches(mgr ctrl.Manager, namespace string) (*sideCaches, error) {
	s := &sideCaches{secrets: map[string]cache.Cache{}}
	limit := func(by cache.ByObject) cache.ByObject {
		if namespace != "" {
			by.Namespaces = map[string]cache.Config{namespace: {}}
		}
		return by
	}
	for _, name := range []string{resources.DatabaseName, resources.CertificateSecret, resources.DatabaseCertificate} {
		by := limit(cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name)})
		c, err := component.Narrow(mgr, head(secretKind), by, apply.Transform(FieldOwner))
		if err != nil {
			return nil, err
		}
		s.secrets[name] = c
	}
	by := limit(cache.ByObject{Label: k8slabels.SelectorFromSet(k8slabels.Set{resources.SourceLabel: resources.SourceLabelValue})})
	var err error
	s.labelled, err = component.Narrow(mgr, &corev1.ConfigMap{}, by, condense)
	return s, err
}

// head is an object of which only the metadata is wanted.
func head(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	h := &metav1.PartialObjectMetadata{}
	h.SetGroupVersionKind(kind)
	return h
}

// routed is a client that finds the Secrets in their caches.
func (s *sideCaches) routed(main client.Client) client.Client {
	return &component.Routed{Client: main, Route: func(key client.ObjectKey, object client.Object) client.Reader {
		if _, metadata := object.(*metav1.PartialObjectMetadata); metadata && object.GetObjectKind().GroupVersionKind() == secretKind {
			if c, held := s.secrets[key.Name]; held {
				return c
			}
		}
		return nil
	}}
}

// sources wake a controller with whatever happens to what the caches hold.
func (s *sideCaches) sources(h handler.EventHandler) []source.Source {
	all := []source.Source{source.Kind(s.labelled, client.Object(&corev1.ConfigMap{}), h)}
	for _, c := range s.secrets {
		all = append(all, source.Kind(c, client.Object(head(secretKind)), h))
	}
	return all
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
